<?php
// A shop plugin's pingback address: it checks what plugins in the field check, is strict about the rest, and keeps what it
// made of each pingback, one line of JSON for each, in the file named by its environment.

const EVENTS = ['payment', 'refund', 'partial_refund', 'chargeback', 'chargeback_reversed', 'refund_failed',
    'subscription_cancelled', 'subscription_stopped'];
const STATES = ['Trial', 'Active', 'Cancelled', 'Expired'];
const OF_A_SUBSCRIPTION = ['id', 'recurring_id', 'status', 'init_merchant_order_id'];

function refuse(string $why): void
{
    keep(['refused' => $why]);
    exit('NOK');
}

function keep(array $what): void
{
    file_put_contents(getenv('KEPT'), json_encode($what) . "\n", FILE_APPEND | LOCK_EX);
}

// The class that verifies: the private key itself in version 1, a signature of the raw body in version 2, which must be
// fresh.
function verified(string $raw): array
{
    $key = getenv('KEY');
    if (($_SERVER['HTTP_X_SERVICE_SIGNATURE_VERSION'] ?? 'v1') === 'v2') {
        $data = json_decode($raw, true) ?? [];
        $right = hash_equals(hash_hmac('sha256', $raw, $key), $_SERVER['HTTP_X_SERVICE_SIGNATURE'] ?? '');
        if (!$right || abs(time() - ($data['pingback_ts'] ?? 0)) > 300) {
            refuse('not signed, or too old');
        }
        return $data;
    }
    if (!hash_equals($key, $_SERVER['HTTP_X_APIKEY'] ?? '')) {
        refuse('not the key');
    }
    return $_POST ?: (json_decode($raw, true) ?? []);
}

function require_money(array $order): void
{
    foreach (['paid_amount', 'merchant_net_revenue', 'merchant_rolling_reserve', 'fees'] as $name) {
        if (!is_numeric($order[$name] ?? null)) {
            refuse("payment_order.$name is no number");
        }
    }
    $parts = $order['merchant_net_revenue'] + $order['merchant_rolling_reserve'] + $order['fees'];
    if (abs($order['paid_amount'] - $parts) > 0.00005) {
        refuse('the amounts do not add up');
    }
}

// Which order of the shop's it is for: a renewal is known by its reference, and its order by the first payment's id.
function order_of(array $order, ?array $subscription): string
{
    $reference = $order['merchant_order_id'] ?? '';
    if ($subscription === null) {
        return explode(':', $reference)[0];
    }
    foreach (OF_A_SUBSCRIPTION as $name) {
        if (empty($subscription[$name])) {
            refuse("subscription.$name is empty");
        }
    }
    if (!in_array($subscription['status'], STATES, true)) {
        refuse("subscription.status is {$subscription['status']}");
    }
    $first = $subscription['init_merchant_order_id'];
    if ($reference === $first) {
        if ((string) $order['id'] !== (string) $subscription['recurring_id']) {
            refuse('the first payment is not the one that the subscription names');
        }
    } elseif (!preg_match('/^' . preg_quote($first, '/') . ':[2-9][0-9]*$/', $reference)) {
        refuse("$reference is no renewal of $first");
    }
    return explode(':', $reference)[0];
}

$raw = file_get_contents('php://input');
if ($_SERVER['REQUEST_METHOD'] !== 'POST') {
    exit('a shop');
}
$data = verified($raw);
$event = $data['event'] ?? '';
if (!in_array($event, EVENTS, true)) {
    refuse("$event is no event");
}
$order = $data['payment_order'] ?? null;
$subscription = $data['subscription'] ?? null;
if (str_starts_with($event, 'subscription_')) {
    if (empty($subscription['id']) || $subscription['status'] !== 'Cancelled') {
        refuse('the end of no subscription');
    }
} else {
    require_money($order);
}
if ($event === 'payment' && $order['status'] !== 'successful') {
    refuse("payment_order.status is {$order['status']}");
}
if (str_contains($event, 'refund') && empty($order['reference_id'])) {
    refuse('a refund without a reference');
}
keep([
    'event' => $event,
    'order' => $event === 'payment' ? order_of($order, $subscription) : null,
    'paid' => $order === null ? null : number_format((float) $order['paid_amount'], 2, '.', ''),
    'recurring_id' => $subscription['recurring_id'] ?? null,
    'fields' => $subscription === null ? [] : array_keys($subscription),
]);
echo 'OK';

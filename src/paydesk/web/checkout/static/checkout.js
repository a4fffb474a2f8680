// Makes the checkout's pages nicer; everything also works without it. Texts come from the page.

// Name, mark, first digits, lengths, and the length at which nearly all of its cards are whole.
const BRANDS = [
  ["Visa", "visa", /^4/, [13, 16, 19], 16],
  ["Mastercard", "mastercard", /^(5[1-5]|2(22[1-9]|2[3-9]|[3-6]|7[01]|720))/, [16], 16],
  ["American Express", "amex", /^3[47]/, [15], 15],
  ["Discover", "discover", /^(6011|64[4-9]|65)/, [16, 17, 18, 19], 16],
  ["Diners Club", "diners", /^(30[0-5]|309|36|38|39)/, [14, 15, 16, 17, 18, 19], 14],
  ["JCB", "jcb", /^35(2[89]|[3-8])/, [16, 17, 18, 19], 16],
  ["UnionPay", "unionpay", /^62/, [16, 17, 18, 19], 19],
  ["Maestro", "", /^(50|5[6-9]|6)/, [12, 13, 14, 15, 16, 17, 18, 19], 19],
];
/** Digits as cards print them: some keyboards type them Arabic, Persian or full-width. */
const latin = (text) => text.replace(/[٠-٩۰-۹０-９]/g, (digit) => digit.charCodeAt(0) & 15);
const digitsOf = (text) => latin(text).replace(/\D/g, "");
const brandOf = (digits) => BRANDS.find(([, , pattern]) => pattern.test(digits));

/** Go on to another page. An app's link may leave this page standing: then show where the payment is. */
function leave(url) {
  location.assign(url);
  if (!/^(https?:|\/)/i.test(url)) setTimeout(() => location.reload(), 2000);
}

function luhn(digits) {
  let sum = 0;
  for (let place = 0; place < digits.length; place++) {
    const digit = digits[digits.length - 1 - place] * (1 + (place % 2));
    sum += digit > 9 ? digit - 9 : digit;
  }
  return sum % 10 === 0;
}

function groupNumber(digits) {
  const groups = /^3[47]/.test(digits) ? /^(.{1,4})(.{1,6})?(.{1,5})?/ : /(.{1,4})(.{1,4})?(.{1,4})?(.{1,4})?(.{1,3})?/;
  return (digits.match(groups) || []).slice(1).filter(Boolean).join(" ");
}

function groupExpiry(text, deleting) {
  const parts = latin(text).split(/\D+/);
  let month = parts[0].slice(0, 2);
  const year = (parts[0].slice(2) + parts.slice(1).join("")).slice(0, 4);
  if (/^[2-9]$/.test(month) || (/^1$/.test(month) && parts.length > 1 && !deleting)) month = "0" + month;
  return month.length < 2 || (deleting && !year) ? month : `${month} / ${year}`;
}

/** What is wrong with a field's value, as the name of the text to show, or nothing. */
const CHECKS = {
  email: (value) => !/^[^\s@]+@[^\s@]+\.[^\s@]+$/.test(value) && "invalid",
  number(value) {
    const digits = digitsOf(value);
    const brand = brandOf(digits);
    const lengths = brand ? brand[3] : [12, 13, 14, 15, 16, 17, 18, 19];
    return !(lengths.includes(digits.length) && luhn(digits)) && "invalid";
  },
  expiry(value) {
    const [, month, year] = value.match(/^\s*(\d\d?)\s*\D\s*(\d\d|20\d\d)\s*$/) || value.match(/^(\d\d)(\d\d|20\d\d)$/) || [];
    if (!(month >= 1 && month <= 12)) return "invalid";
    // The server decides by the day; here a card is given a day of grace for the time zones of the world.
    return new Date(2000 + (year % 100), month, 2) < new Date() && "expired";
  },
  cvc(value) {
    const brand = brandOf(digitsOf(document.getElementById("number").value));
    const pattern = brand && brand[1] !== "amex" ? /^\d{3}$/ : /^\d{3,4}$/;
    return !pattern.test(value) && "invalid";
  },
};

/** Whether a field is whole, so that the next one may follow by itself. */
const WHOLE = {
  number(value) {
    const digits = digitsOf(value);
    return digits.length === brandOf(digits)?.[4] && luhn(digits);
  },
  expiry: (value) => /^\d\d \/ \d\d$/.test(value) && !CHECKS.expiry(value),
};

function showError(input, text) {
  const place = document.getElementById(`${input.id}-error`);
  place.textContent = text;
  place.hidden = !text;
  input.setAttribute("aria-describedby", WHOLE[input.name] && !text ? `onward ${place.id}` : place.id);
  if (text) input.setAttribute("aria-invalid", "true");
  else input.removeAttribute("aria-invalid");
}

/** What was typed, or whether a box is ticked. */
const valueOf = (input) => (input.type === "checkbox" ? input.checked : input.value.trim());

/** What is wrong with a field, as the name of the text to show, or nothing. */
function wrongOf(input) {
  const value = valueOf(input);
  return value ? CHECKS[input.name]?.(value) : input.required && "empty";
}

function check(input) {
  const code = wrongOf(input);
  showError(input, code ? input.dataset[code] : "");
  return !code;
}

/**
 * Go from a field to the next one once it is whole: only while it is first typed, never where somebody corrects it or
 * has typed the next one already.
 */
function goOn(input, next) {
  let first = !input.value;
  input.addEventListener("focus", () => (first = !input.value));
  input.addEventListener("input", (event) => {
    if (!event.inputType?.startsWith("insert")) first = !input.value;
    const here = document.activeElement === input && input.selectionStart === input.value.length;
    if (!first || !here || next.value || event.isComposing || !WHOLE[input.name](input.value)) return;
    first = false;
    next.focus();
  });
}

function enhance(form) {
  const inputs = [...form.querySelectorAll("input, select")];
  const { email, number, expiry, cvc, holder, country, agree } = form.elements;
  const notice = document.getElementById("notice");
  const button = form.querySelector(".main");
  const label = button.querySelector("span");
  const wish = label.textContent;
  const busyText = document.getElementById("busy");
  const fields = form.querySelector("[data-fields]");
  const touched = matchMedia("(pointer: coarse)").matches;
  let busy = false;
  let pressed = false;

  /** Show how far the form is: `""` to be filled in, `"working"` on its way, `"over"` done. */
  function setBusy(state) {
    const said = { working: busyText.dataset.text, over: busyText.dataset.done }[state] || "";
    busy = Boolean(state);
    form.classList.toggle("working", state === "working");
    form.classList.toggle("over", state === "over");
    button.setAttribute("aria-disabled", busy);
    // What is inert is sent all the same, but loses the focus.
    if (busy && fields.contains(document.activeElement)) button.focus({ preventScroll: true });
    fields.inert = busy;
    label.textContent = said || wish;
    busyText.textContent = said;
  }

  function showNotice(text) {
    document.getElementById("notice-text").textContent = text;
    notice.querySelector("ul")?.remove();
    notice.hidden = !text;
    if (text) notice.scrollIntoView({ block: "nearest" });
  }

  function showBrand() {
    const [name, mark] = brandOf(digitsOf(number.value)) || ["", ""];
    const status = document.getElementById("brand");
    const drawn = document.querySelector(`.brands [data-brand="${mark}"]`)?.cloneNode(true);
    if (status.textContent !== name) {
      status.textContent = name;
      document.getElementById("mark").replaceChildren(drawn || name);
    }
    cvc.maxLength = name && mark !== "amex" ? 3 : 4;
    for (const svg of form.querySelectorAll("[data-code]")) {
      svg.classList.toggle("off", svg.dataset.code === (mark === "amex" ? "3" : "4"));
    }
  }

  function typeNumber() {
    const before = digitsOf(number.value.slice(0, number.selectionStart)).length;
    const atEnd = number.selectionStart === number.value.length;
    const grouped = groupNumber(digitsOf(number.value).slice(0, 19));
    if (grouped !== number.value) {
      number.value = grouped;
      let caret = 0;
      for (let seen = 0; seen < before; caret++) if (grouped[caret] !== " ") seen++;
      if (atEnd) caret = grouped.length;
      number.setSelectionRange(caret, caret);
    }
    showBrand();
  }

  function typeExpiry(event) {
    if (expiry.selectionStart !== expiry.value.length) return;
    expiry.value = groupExpiry(expiry.value, event.inputType?.startsWith("delete"));
  }

  function typeCvc() {
    cvc.value = digitsOf(cvc.value);
  }

  function fill(card) {
    number.value = card;
    typeNumber();
    expiry.value = `12 / ${(new Date().getFullYear() + 3) % 100}`;
    cvc.value = brandOf(card)[1] === "amex" ? "1234" : "123";
    holder.value ||= "Test Customer";
    if (email) email.value ||= "customer@example.com";
    if (country) country.value ||= "US";
    inputs.forEach((input) => input !== agree && check(input));
    // Whoever tests must agree too, so that they see what a customer sees.
    (agree?.checked === false ? agree : button).focus();
  }

  /** Check a field that was left, but never move the page under a finger that is pressing something. */
  function leaveField(input) {
    if (!valueOf(input)) return;
    if (pressed) addEventListener("pointerup", () => setTimeout(check, 0, input), { once: true });
    else check(input);
  }

  function show({ errors = {}, notice: text = "", focus = "" }) {
    for (const input of inputs) showError(input, errors[input.name] || "");
    showNotice(text);
    const field = form.elements[focus || Object.keys(errors)[0]] || button;
    field.focus();
    field.select?.();
  }

  async function pay() {
    const answer = await fetch(form.action, {
      method: "POST",
      body: new URLSearchParams(new FormData(form)),
      headers: { Accept: "application/json" },
      signal: AbortSignal.timeout(90000),
    });
    return answer.json();
  }

  form.noValidate = true;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (busy) return;
    showNotice("");
    const wrong = inputs.filter((input) => !check(input));
    if (wrong.length) return wrong[0].focus();
    setBusy("working");
    if (!form.dataset.connection) return form.submit();
    try {
      const answer = await pay();
      if (answer.done) setBusy("over");
      if (answer.redirect) return leave(answer.redirect);
      setBusy("");
      cvc.value = ""; // A security code is for one attempt only.
      show(answer);
    } catch {
      setBusy("");
      show({ notice: form.dataset.connection });
    }
  });
  for (const kind of ["pointerdown", "pointerup", "pointercancel"]) {
    addEventListener(kind, () => (pressed = kind === "pointerdown"), { capture: true });
  }
  for (const [input, tidy] of [[number, typeNumber], [expiry, typeExpiry], [cvc, typeCvc]]) {
    // A text that an input method still composes is not ours to change.
    input.addEventListener("input", (event) => event.isComposing || tidy(event));
    input.addEventListener("compositionend", tidy);
  }
  for (const input of inputs) {
    input.addEventListener("change", () => leaveField(input));
    // What is wrong stays so until it is right.
    input.addEventListener("input", () => input.hasAttribute("aria-invalid") && !wrongOf(input) && showError(input, ""));
    input.addEventListener("keydown", (event) => {
      // A keyboard of glass that says "next" means it.
      if (!touched || event.key !== "Enter" || event.isComposing || input.enterKeyHint !== "next") return;
      event.preventDefault();
      inputs[inputs.indexOf(input) + 1]?.focus();
    });
    if (WHOLE[input.name] && !input.hasAttribute("aria-invalid")) showError(input, "");
  }
  goOn(number, expiry);
  goOn(expiry, cvc);
  for (const fillButton of document.querySelectorAll("[data-fill]")) {
    const card = fillButton.parentElement.querySelector("code").textContent;
    fillButton.hidden = false;
    fillButton.ariaLabel = `${fillButton.textContent} ${card}`;
    fillButton.addEventListener("click", () => fill(card));
  }
  // The back button may bring this very page back, still busy.
  addEventListener("pageshow", () => setBusy(""));
  typeNumber();
  const calm = notice.hidden && document.activeElement === document.body && !document.querySelector(".saved");
  if (calm && matchMedia("(min-width: 56rem) and (hover: hover) and (pointer: fine)").matches) {
    inputs.find((input) => !valueOf(input))?.focus({ preventScroll: true });
  }
}

async function poll(place) {
  const started = Date.now();
  for (let pause = 500; ; pause = Math.min(pause * 1.3, 5000)) {
    await new Promise((done) => setTimeout(done, pause));
    if (Date.now() - started > 30000) document.getElementById("long").hidden = false;
    try {
      const answer = await fetch(place.dataset.status, { headers: { Accept: "application/json" } });
      const { state, url } = await answer.json();
      if (state === "done") return leave(url);
    } catch {
      // The next round may go better.
    }
  }
}

for (const button of document.querySelectorAll("[data-back]")) {
  button.hidden = history.length < 2;
  button.addEventListener("click", () => history.back());
}
// A browser that can't show the rest of a folded order beside a wide form gets it unfolded.
const order = document.querySelector(".order details");
if (order && !CSS.supports("selector(::details-content)")) order.open = matchMedia("(min-width: 56rem)").matches;
const form = document.getElementById("payment");
const checking = document.getElementById("checking");
if (form) enhance(form);
if (checking) poll(checking);

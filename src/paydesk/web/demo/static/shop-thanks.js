// Brings pingbacks to the thank-you page as soon as the shop has them, without loading the page again.
const FIRST_WAIT = 500;
const LONGEST_WAIT = 5000;
const MOST_LOOKS = 60;

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const known = (page) => page.getElementById("state")?.dataset;

async function look() {
  const answer = await fetch(location.href, { cache: "no-store" });
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (!known(page) || known(page).known === known(document).known) return;
  for (const id of ["state", "desk", "pingbacks"]) {
    document.getElementById(id).replaceChildren(...page.getElementById(id).childNodes);
  }
  Object.assign(known(document), known(page));
  document.title = page.title;
}

let wait = FIRST_WAIT;
for (let looks = 0; looks < MOST_LOOKS && known(document).awaits === "1"; looks += 1) {
  await pause(wait);
  wait = Math.min(wait * 1.2, LONGEST_WAIT);
  // The server may be restarting; the next look finds it again.
  await look().catch(() => {});
}

// Makes the account's pages nicer; they all work without it.

// A menu closes when one looks elsewhere, and gives the focus back when Escape closes it.
document.addEventListener("click", (event) => {
  for (const open of document.querySelectorAll("details.drop[open]")) {
    if (!open.contains(event.target)) open.open = false;
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  const open = document.querySelector("details.drop[open]");
  if (!open) return;
  open.open = false;
  open.querySelector("summary").focus();
});

// A slash goes to the box that searches everything, wherever nothing is typed.
document.addEventListener("keydown", (event) => {
  const box = document.querySelector("[data-slash]");
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || !box) return;
  if (event.target.closest("input, select, textarea, [contenteditable]")) return;
  event.preventDefault();
  box.focus();
  box.select();
});

// Copying is offered where it works.
if (navigator.clipboard) {
  for (const button of document.querySelectorAll("[data-copy]")) button.hidden = false;
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    await navigator.clipboard.writeText(button.dataset.copy);
    button.classList.add("btn-success");
    setTimeout(() => button.classList.remove("btn-success"), 1500);
  });
}

// On a small screen, the tab that is open is in sight.
document.querySelector(".views [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

// The first field that is wrong takes the focus.
document.querySelector("[aria-invalid]")?.focus();

// A form is sent once, however often its button is pressed.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post") return;
  if (form.dataset.sent) event.preventDefault();
  form.dataset.sent = "1";
});
addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
});

// Shows colour and logo in the pages in small while they are being chosen; without it they follow what is saved.
const accent = document.querySelector("#f-accent");
const picker = document.querySelector("#f-picker");
const logo = document.querySelector("#f-logo");
const removal = document.querySelector("[name=remove_logo]");
const unreadable = document.querySelector("#unreadable");
const shades = document.querySelector("#shades");
const pictures = document.querySelectorAll("[data-logo]");
const letters = document.querySelectorAll("[data-no-logo]");
const saved = pictures[0].getAttribute("src");
let asked = 0;
let waiting;

// The server knows what can be read, and how a colour looks in the dark: it is asked once one rests.
async function wear() {
  const mine = ++asked;
  const address = `${shades.dataset.address}?${new URLSearchParams({ accent: accent.value })}`;
  const answer = await fetch(address).catch(() => null);
  if (!answer || mine !== asked) return;
  const said = await answer.text();
  if (mine !== asked) return;
  const wrong = answer.status === 400 && accent.value.length > 6;
  unreadable.hidden = !wrong;
  unreadable.textContent = wrong ? said : "";
  if (answer.ok) shades.href = address;
}
function soon() {
  clearTimeout(waiting);
  waiting = setTimeout(wear, 120);
}
accent.addEventListener("input", () => {
  if (/^#[0-9a-f]{6}$/i.test(accent.value)) picker.value = accent.value;
  soon();
});
picker.addEventListener("input", () => {
  accent.value = picker.value;
  soon();
});
document.querySelector("#no-accent").addEventListener("click", () => {
  accent.value = "";
  picker.value = accent.placeholder;
  soon();
});
document.querySelector(".picker").hidden = false;

function draw(address) {
  for (const picture of pictures) {
    picture.hidden = !address;
    if (address) picture.src = address;
  }
  for (const letter of letters) letter.hidden = Boolean(address);
}
function choose() {
  const file = logo.files[0];
  if (!file) return draw(removal?.checked ? "" : saved);
  const reader = new FileReader();
  reader.addEventListener("load", () => draw(reader.result));
  reader.readAsDataURL(file);
}
logo.addEventListener("change", choose);
removal?.addEventListener("change", choose);

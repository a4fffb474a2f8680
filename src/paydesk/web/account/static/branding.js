// Shows colour and logo in the pages in small while they are being chosen; without it they follow what is saved.
const accent = document.querySelector("#f-accent");
const picker = document.querySelector("#f-picker");
const logo = document.querySelector("#f-logo");
const removal = document.querySelector("[name=remove_logo]");
const unreadable = document.querySelector("#unreadable");
const shades = document.querySelector("#shades");
const pictures = document.querySelectorAll("[data-logo]");
const letters = document.querySelectorAll("[data-no-logo]");
const darkLogo = document.querySelector("#f-dark_logo");
const darkRemoval = document.querySelector("[name=remove_dark_logo]");
const saved = { logo: present(logo), darkLogo: present(darkLogo) };
function present(field) {
  return field.parentElement.querySelector(".chosen-logo")?.getAttribute("src") ?? "";
}
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

// A file that was chosen, as an address that a picture may have here.
function addressOf(field, removal, saved) {
  const file = field.files[0];
  if (!file) return removal?.checked ? "" : saved;
  return new Promise((resolve) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => resolve(reader.result));
    reader.readAsDataURL(file);
  });
}
async function draw() {
  const light = await addressOf(logo, removal, saved.logo);
  const dark = (await addressOf(darkLogo, darkRemoval, saved.darkLogo)) || light;
  for (const picture of pictures) {
    const address = light && (picture.dataset.logo === "dark" ? dark : light);
    picture.hidden = !address;
    if (address) picture.src = address;
  }
  for (const letter of letters) letter.hidden = Boolean(light);
  document.querySelector(".mini.mail.dark").classList.toggle("plain", dark === light);
}
for (const field of [logo, removal, darkLogo, darkRemoval]) field?.addEventListener("change", draw);

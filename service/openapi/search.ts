// The search of the page with the operations, as a script of the browser. The page works without it as well.
import { hash } from "node:crypto";

/** The script. It shows the operations and types whose heading has every word of the search. */
export const searchScript = `
const box = document.getElementById("search");
const found = document.getElementById("found");
const entries = Array.from(document.querySelectorAll("details"), (element) => ({
  element,
  text: element.querySelector("summary").textContent.toLowerCase(),
}));
function search() {
  const words = box.value.toLowerCase().split(/\\s+/).filter((word) => word !== "");
  let count = 0;
  for (const { element, text } of entries) {
    element.hidden = !words.every((word) => text.includes(word));
    if (!element.hidden) count++;
  }
  for (const section of document.querySelectorAll("section"))
    section.hidden = section.querySelector("details:not([hidden])") === null;
  found.textContent = words.length === 0 ? "" : count + " of " + entries.length;
}
function openTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target === null || target.tagName !== "DETAILS") return;
  if (target.hidden) {
    box.value = "";
    search();
  }
  target.open = true;
  target.scrollIntoView();
}
box.parentElement.hidden = false;
box.addEventListener("input", search);
addEventListener("hashchange", openTarget);
if (box.value !== "") search();
openTarget();
`;

/** Its hash, for the content security policy. */
export const searchHash = `sha256-${hash("sha256", searchScript, "base64")}`;

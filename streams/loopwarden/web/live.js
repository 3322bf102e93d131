// Fetches the page again and puts in what changed, so that what someone has opened, selected or points at stays.
// The page is whole without it: it is only shown anew less often then.

const EVERY_MS = 1000;
const LONGEST_MS = 8000;
const live = document.getElementById("live");
const state = document.getElementById("following");
const pause = document.getElementById("pause");
let mark = null;
let paused = false;
let failures = 0;
let timer = 0;

/** Make `old` what `fresh` is, changing as little as possible. */
export function become(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName || old.id !== fresh.id) {
    old.replaceWith(fresh);
    return;
  }
  if (old.nodeType !== Node.ELEMENT_NODE) {
    old.nodeValue = fresh.nodeValue;
    return;
  }
  takeAttributes(old, fresh);
  if (!old.matches("input, select, textarea")) takeChildren(old, fresh);
}

function takeAttributes(old, fresh) {
  for (const { name, value } of [...fresh.attributes]) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) {
    // What a reader has opened stays open.
    if (!fresh.hasAttribute(name) && name !== "open") old.removeAttribute(name);
  }
}

function takeChildren(old, fresh) {
  const coming = [...fresh.childNodes];
  const named = new Map([...old.children].filter((child) => child.id).map((child) => [child.id, child]));
  const staying = new Set(coming.map((child) => child.id).filter((id) => id && named.has(id)));
  let place = old.firstChild;
  for (const child of coming) {
    const known = child.id ? named.get(child.id) : undefined;
    // Rows that came above are put in; what has a name is found again by it, wherever it is now.
    while (place && place.id && !staying.has(place.id)) {
      const gone = place;
      place = place.nextSibling;
      gone.remove();
    }
    if (known) {
      if (known !== place) old.insertBefore(known, place);
      else place = place.nextSibling;
      become(known, child);
    } else if (!place || child.id || staying.has(place.id)) {
      old.insertBefore(child, place);
    } else {
      const next = place.nextSibling;
      become(place, child);
      place = next;
    }
  }
  while (place) {
    const gone = place;
    place = place.nextSibling;
    gone.remove();
  }
}

function tell(words, kind) {
  if (state.textContent !== words) state.textContent = words;
  state.className = kind;
}

async function look() {
  const answer = await fetch(location.href, { cache: "no-cache", headers: { Accept: "text/html" } });
  if (answer.status === 401) return location.reload();
  const text = await answer.text();
  const now = answer.headers.get("ETag");
  if (now === mark) return undefined;
  const page = new DOMParser().parseFromString(text, "text/html");
  const fresh = page.getElementById("live");
  if (!fresh) throw new Error("not a page");
  become(live, fresh);
  document.title = page.title;
  mark = now;
  return undefined;
}

async function follow() {
  clearTimeout(timer);
  const started = performance.now();
  try {
    if (!paused && !document.hidden) {
      await look();
      if (!paused) tell("live", "on");
    }
    failures = 0;
  } catch {
    failures += 1;
    tell("no answer: trying again", "off");
  }
  // A page that takes long is asked for less often.
  const pauseMs = Math.max(EVERY_MS * (failures ? 2 ** failures : 1), 4 * (performance.now() - started));
  clearTimeout(timer);
  timer = setTimeout(follow, Math.min(pauseMs, LONGEST_MS));
}

pause.hidden = false;
pause.addEventListener("click", () => {
  paused = !paused;
  pause.textContent = paused ? "Go on" : "Pause";
  if (paused) tell("paused", "off");
  else follow();
});
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) follow();
});
follow();

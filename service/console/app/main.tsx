// The page: its head, and the view that the address names.
import { render, type JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { address, followLinks, to } from "./address.ts";
import { AppPage } from "./appView.tsx";
import { ClusterPage } from "./clusterView.tsx";
import { FaultsPage } from "./faults.tsx";
import { Help, HelpButton } from "./help.tsx";
import { isLive, send, who } from "./live.ts";
import { MachinePage } from "./machineView.tsx";
import { OverviewView } from "./overview.tsx";
import { keepFocus } from "./dialog.tsx";
import { Empty, say, spoken } from "./parts.tsx";
import { RequestsPage } from "./requests.tsx";
import { RolloutPage, RolloutsPage } from "./rollouts.tsx";
import { Search, SearchButton } from "./search.tsx";
import { forgetPageKey } from "./session.ts";
import { SignIn, enter } from "./signIn.tsx";

/** The parts of a path; as they are written, if they are not encoded as they should be. */
function partsOf(path: string): readonly string[] {
  const parts = path.split("/").filter(Boolean);
  try {
    return parts.map(decodeURIComponent);
  } catch {
    return parts;
  }
}

function View(): JSX.Element {
  const parts = partsOf(address.value.path);
  const [, kind, one, of, other] = parts;
  if (parts.length === 0 || (parts.length === 1 && parts[0] === "console")) return <OverviewView />;
  if (kind === "requests" && one === undefined) return <RequestsPage />;
  if (kind === "rollouts" && one === undefined) return <RolloutsPage />;
  if (kind === "rollouts" && one !== undefined) return <RolloutPage key={one} id={one} />;
  if (kind === "faults" && one === undefined) return <FaultsPage />;
  if (kind === "clusters" && one !== undefined) return <ClusterPage key={one} id={one} />;
  if (kind === "apps" && one !== undefined && of === undefined) return <AppPage key={one} name={one} />;
  if (kind === "apps" && one !== undefined && of === "machines" && other !== undefined)
    return <MachinePage key={other} app={one} id={other} />;
  return (
    <>
      <h1>Nothing here</h1>
      <Empty>
        There is no such page. <a href={to.overview}>The overview</a> has all.
      </Empty>
    </>
  );
}

const themes = ["auto", "light", "dark"] as const;

function Theme(): JSX.Element {
  const chosen = localStorage.getItem("theme") ?? "auto";
  return (
    <select
      aria-label="Theme"
      value={chosen}
      onChange={(event) => {
        localStorage.setItem("theme", event.currentTarget.value);
        applyTheme();
      }}
    >
      {themes.map((theme) => (
        <option key={theme}>{theme}</option>
      ))}
    </select>
  );
}

/** What a session may do whose console was started with `--console write`. */
const mayDo = {
  read: "read-only",
  operate: "may operate Machines",
  deploy: "may change Machines",
  own: "may change Machines",
} as const;

function applyTheme(): void {
  const chosen = localStorage.getItem("theme");
  document.documentElement.dataset["theme"] = themes.find((theme) => theme === chosen) ?? "auto";
}

const Tab = ({ href, children }: { readonly href: string; readonly children: string }): JSX.Element => (
  <a href={href} aria-current={address.value.path === href ? "page" : undefined}>
    {children}
  </a>
);

function Page(): JSX.Element {
  const { path } = address.value;
  const user = who.value;
  const stage = user === undefined ? "connecting" : user === null ? "signing in" : "signed in";
  const before = useRef(stage);
  useEffect(() => {
    const last = partsOf(path).at(-1);
    document.title = last === undefined ? "Machines Control Service" : `${last} · Machines Control Service`;
    // The link that was followed is gone with its view. On a first visit the focus is where the browser has it.
    if (before.current !== "connecting" && stage === "signed in") keepFocus();
    before.current = stage;
  }, [path, stage]);
  if (user === undefined) return <p class="faint">Connecting …</p>;
  if (user === null) return <SignIn />;
  const { organization, canWrite, role, runtime, isOperator } = user;
  return (
    <>
      <a
        class="skip"
        href="#content"
        onClick={(event) => (event.preventDefault(), document.querySelector("main")?.focus())}
      >
        To the content
      </a>
      <header class="page">
        <a href={to.overview} class="brand">
          <img src="/console/assets/icon.svg" width="20" height="20" alt="" /> {organization}
        </a>
        <nav aria-label="Views">
          <Tab href={to.overview}>Overview</Tab>
          <Tab href={to.rollouts}>Rollouts</Tab>
          <Tab href={to.requests}>Requests</Tab>
          {isOperator && <Tab href={to.faults}>Faults</Tab>}
          <a href="/docs">API</a>
        </nav>
        <SearchButton />
        <span class="spring" />
        <span class={`state ${isLive.value ? "good" : "odd"}`} role="status">
          <span aria-hidden="true">{isLive.value ? "●" : "◌"}</span>
          {isLive.value ? "live" : "connecting …"}
        </span>
        <span class="faint">{runtime}</span>
        <span class="faint">{canWrite ? mayDo[role] : "read-only"}</span>
        <HelpButton />
        <Theme />
        <button
          type="button"
          class="plain"
          // Loaded again, the page remembers nothing of the session.
          onClick={() => void send("DELETE", "/console/session").then(leave, say)}
        >
          Sign out
        </button>
      </header>
      <main id="content" tabIndex={-1}>
        <View />
      </main>
      <Search />
      <Help />
      <div class="toast" role="status" hidden={spoken.value === ""}>
        {spoken.value}
      </div>
    </>
  );
}

function leave(): void {
  forgetPageKey();
  location.reload();
}

applyTheme();
document.addEventListener("click", followLinks);
const root = document.getElementById("app");
if (root) render(<Page />, root);
await enter();
// A link that was pasted into this tab loads no page.
window.addEventListener("hashchange", () => void enter());

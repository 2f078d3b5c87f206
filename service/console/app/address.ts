// The address of the page decides what is shown, filters too: it can be copied, and going back works.
import { signal } from "@preact/signals";

/** The path of the page, and its query. */
export interface Address {
  readonly path: string;
  readonly query: URLSearchParams;
}

const current = (): Address => ({ path: location.pathname, query: new URLSearchParams(location.search) });

/** The address that is shown. */
export const address = signal<Address>(current());

window.addEventListener("popstate", () => {
  address.value = current();
});

/** Goes to an address of the console. */
export function go(to: string): void {
  if (to !== location.pathname + location.search) history.pushState(null, "", to);
  address.value = current();
}

/** Changes parts of the query; an empty value leaves its part out. The history gets no entry for each letter. */
export function setQuery(parts: Readonly<Record<string, string | undefined>>): void {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(parts))
    if (value === undefined || value === "") query.delete(name);
    else query.set(name, value);
  history.replaceState(null, "", query.size > 0 ? `${location.pathname}?${query}` : location.pathname);
  address.value = current();
}

/** A part of the query; empty if it is left out. */
export const queryOf = (name: string): string => address.value.query.get(name) ?? "";

/** Links of the page stay in it. */
export function followLinks(event: MouseEvent): void {
  const link = (event.target as Element | null)?.closest("a");
  const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
  if (!link || !isPlain || link.origin !== location.origin || link.target !== "" || event.defaultPrevented) return;
  if (link.pathname !== "/" && !link.pathname.startsWith("/console")) return;
  event.preventDefault();
  go(link.pathname + link.search);
  window.scrollTo(0, 0);
}

const encoded = encodeURIComponent;

/** Addresses of the views. */
export const to = {
  overview: "/",
  rollouts: "/console/rollouts",
  rollout: (id: string) => `/console/rollouts/${encoded(id)}`,
  requests: "/console/requests",
  requestsWith: (query: Readonly<Record<string, string>>) => `/console/requests?${new URLSearchParams(query)}`,
  faults: "/console/faults",
  app: (app: string) => `/console/apps/${encoded(app)}`,
  machine: (app: string, id: string) => `/console/apps/${encoded(app)}/machines/${encoded(id)}`,
  cluster: (id: string) => `/console/clusters/${encoded(id)}`,
};

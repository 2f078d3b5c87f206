// What a proxy of its own and the service have agreed on: the paths that it uses, and how much it reports at once.

/** What a proxy needs to route. */
export const feedPath = "/local/proxy/feed";

/** What a proxy reports. */
export const reportPath = "/local/proxy/report";

/** What a proxy has answered. */
export const answersPath = "/local/proxy/answers";

/** Number of routes in one report of answers. */
export const mostCounts = 200;

/** Starts a Machine for a request. */
export const startPath = (machine: string): string => `/local/proxy/machines/${machine}/start`;

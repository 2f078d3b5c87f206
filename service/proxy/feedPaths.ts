// The paths of the service that a proxy of its own uses.

/** What a proxy needs to route. */
export const feedPath = "/local/proxy/feed";

/** What a proxy reports. */
export const reportPath = "/local/proxy/report";

/** Starts a Machine for a request. */
export const startPath = (machine: string): string => `/local/proxy/machines/${machine}/start`;

// Roles of tokens and sessions, from the fewest rights to all of them.

/** The roles, each with the rights of those before it. */
export const roles = ["read", "operate", "deploy", "own"] as const;

/** What a token may do in what it is for. */
export type Role = (typeof roles)[number];

/** The role of a proxy that is a process of its own: it has none of the rights of the others, and they have none of its rights. */
export const proxyRole = "proxy";

/** The role of a token. */
export type TokenRole = Role | typeof proxyRole;

/** Whether a role has the rights of another. */
export const hasRole = (role: TokenRole, needed: Role): boolean =>
  role !== proxyRole && roles.indexOf(role) >= roles.indexOf(needed);

// Roles of tokens and sessions, from the fewest rights to all of them.

/** The roles, each with the rights of those before it. */
export const roles = ["read", "operate", "deploy", "own"] as const;

/** What a token may do in what it is for. */
export type Role = (typeof roles)[number];

/** Whether a role has the rights of another. */
export const hasRole = (role: Role, needed: Role): boolean => roles.indexOf(role) >= roles.indexOf(needed);

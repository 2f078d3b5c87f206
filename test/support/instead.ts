/** An object with some other members. */
export const instead = <T extends object>(target: T, members: Partial<T>): T =>
  new Proxy(target, {
    get(from, name) {
      const own: unknown = Reflect.get(members, name);
      if (own !== undefined) return own;
      const member: unknown = Reflect.get(from, name);
      return typeof member === "function" ? (member as () => unknown).bind(from) : member;
    },
  });

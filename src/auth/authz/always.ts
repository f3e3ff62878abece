import type { Authorizer } from "../user.ts";

/** `--authorization-mode=AlwaysAllow` */
export const alwaysAllow: Authorizer = {
  authorize: async () => ({ decision: "allow", reason: "" }),
  rulesFor: () => ({
    rules: [
      { verbs: ["*"], apiGroups: ["*"], resources: ["*"] },
      { verbs: ["*"], nonResourceURLs: ["*"] },
    ],
    incomplete: false,
  }),
};

/** `--authorization-mode=AlwaysDeny` */
export const alwaysDeny: Authorizer = {
  authorize: async () => ({ decision: "no-opinion", reason: "Everything is forbidden." }),
};

/** Allows all requests of the group's members. */
export function privilegedGroup(group: string): Authorizer {
  return {
    authorize: async ({ user }) =>
      user.groups.includes(group) ? { decision: "allow", reason: "" } : { decision: "no-opinion", reason: "" },
  };
}

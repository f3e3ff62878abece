import type { Authorization, Authorizer } from "../user.ts";

const ALLOWED: Authorization = { decision: "allow", reason: "" };
const NO_OPINION: Authorization = { decision: "no-opinion", reason: "" };

/** `--authorization-mode=AlwaysAllow` */
export const alwaysAllow: Authorizer = {
  authorize: () => ({ decision: "allow", reason: "" }),
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
  authorize: () => ({ decision: "no-opinion", reason: "Everything is forbidden." }),
};

/** Allows all requests of the group's members. */
export function privilegedGroup(group: string): Authorizer {
  return {
    authorize: ({ user }) => (user.groups.includes(group) ? ALLOWED : NO_OPINION),
  };
}

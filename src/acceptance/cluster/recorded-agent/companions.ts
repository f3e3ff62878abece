/** Cases that were recorded while the pod of another case was running and depend on it. */
import type { Case } from "./cases.ts";

/** First case → the case that follows it. */
const followers: Readonly<Record<string, string>> = {
  "cfg-a-preempt-victim": "cfg-a-preempt-critical",
  "cfg-m-holder": "cfg-m-out-of-pods",
  "host-port-first": "host-port-conflict",
};

/** The case that starts when this one's pod is running. */
export function followerOf(one: Case, cases: readonly Case[]): Case | undefined {
  return cases.find(({ id }) => id === followers[one.id]);
}

/** Whether the case starts after another one. */
export function isFollower({ id }: Case): boolean {
  return Object.values(followers).includes(id);
}

/** The ids with those of the cases that they depend on. */
export function withCompanions(ids: readonly string[]): readonly string[] {
  return [...ids, ...Object.entries(followers).flatMap((pair) => (pair.some((id) => ids.includes(id)) ? pair : []))];
}

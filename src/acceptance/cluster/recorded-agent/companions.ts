/** Cases that were recorded while another one's pod was running: what they show follows from it. */
import type { Case } from "./cases.ts";

/** By the case that came first: the one that followed. */
const followers: Readonly<Record<string, string>> = {
  "cfg-a-preempt-victim": "cfg-a-preempt-critical",
  "cfg-m-holder": "cfg-m-out-of-pods",
  "host-port-first": "host-port-conflict",
};

/** The case that begins once this one's pod is running. */
export function followerOf(one: Case, cases: readonly Case[]): Case | undefined {
  return cases.find(({ id }) => id === followers[one.id]);
}

/** Whether another case has to begin first. */
export function isFollower({ id }: Case): boolean {
  return Object.values(followers).includes(id);
}

/** The ids, and those of the cases that they need beside them. */
export function withCompanions(ids: readonly string[]): readonly string[] {
  return [...ids, ...Object.entries(followers).flatMap((pair) => (pair.some((id) => ids.includes(id)) ? pair : []))];
}

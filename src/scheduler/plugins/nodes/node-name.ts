import type { Plugin } from "../../framework/plugin.ts";
import { unresolvable } from "../../framework/rejection.ts";

const NAME = "NodeName";
const MISMATCH = unresolvable(NAME, "node(s) didn't match the requested node name");

/** A pod that names its node runs only there. */
export const nodeName: Plugin = {
  name: NAME,
  points: ["filter"],
  events: [{ resource: "Node", actions: ["Add"] }],
  preFilter({ pod }) {
    const wanted = pod.pod.spec?.nodeName ?? "";
    return wanted === "" ? "skip" : { filter: { filter: ({ name }) => (name === wanted ? undefined : MISMATCH) } };
  },
};

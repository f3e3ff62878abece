import type { Plugin } from "../../framework/plugin.ts";

/** Pods of a higher priority first, then those that wait the longest: the only order that the queue has. */
export const prioritySort: Plugin = { name: "PrioritySort", points: ["queueSort"] };

/** Compares what a scenario's objects did with its recording, as strictly as recordings of the same scenario agree. */
import type { Event } from "../../../api/core/event/schema.ts";
import type { ApiObject } from "../../../api/kind.ts";
import { type Mask, milestonesOf, textOf, trim, trimEvent } from "./normalize.ts";
import type { Json, RecordedEvent, Scenario, Transition } from "./scenario.ts";

/** How often an error is repeated, and whether a budget is synced before its pods exist, depend on the machine. */
const VARYING_REASONS = ["FailedCreate", "NoPods"];

/** It records the events of pending claims again every five seconds, at times that differ between runs. */
const PERIODIC = "persistentvolume-controller";

export interface Observed {
  readonly objects: readonly ApiObject[];
  readonly events: readonly Event[];
  readonly transitions: readonly Transition[];
}

/** Returns the differences of the kinds. */
export function compareWithRecording(
  { expect, stable }: Scenario,
  { objects, events, transitions }: Observed,
  kinds: readonly string[],
  mask: Mask,
): readonly string[] {
  const unstable = Array.isArray(stable.final) ? (stable.final as readonly string[]) : [];
  const isStable = (object: Json): boolean =>
    !unstable.some((path) => path.startsWith(`${object.kind}/`) || path.startsWith("Pod"));
  const asFinal = (object: Json): string => maskNode(mask.json({ spec: {}, status: {}, ...object }));
  const wanted = expect.final.filter(({ kind }) => kinds.includes(String(kind)));
  const asText = (event: RecordedEvent): string =>
    `${event.type} ${event.reason} ${event.kind}/${mask.text(event.name)} ${event.component} ` +
    mask.text(event.message) +
    (stable.events === "all" && event.component !== PERIODIC ? ` ${event.count}` : "");
  const differing = (stable.eventsDiffer ?? []).join(" ");
  const isComparable = (event: RecordedEvent): boolean =>
    !VARYING_REASONS.includes(event.reason) && !differing.includes(event.reason) && kinds.includes(event.kind);
  return [
    ...compareBags("final", objects.map(trim).filter(isStable).map(asFinal), wanted.filter(isStable).map(asFinal)),
    ...compareBags(
      "event",
      events.map(trimEvent).filter(isComparable).map(asText),
      expect.events.filter(isComparable).map(asText),
    ),
    ...compareTransitions(expect.transitions, transitions, { level: stable.transitions, kinds, mask }),
  ];
}

interface Comparison {
  /** How strictly the transitions are compared: what was the same in several recordings. */
  readonly level: string | undefined;
  readonly kinds: readonly string[];
  readonly mask: Mask;
}

/** Transitions of a group may come in any order. */
type Group = readonly Transition[];

function compareTransitions(
  expected: Scenario["expect"]["transitions"],
  found: readonly Transition[],
  { level, kinds, mask }: Comparison,
): readonly string[] {
  if (level === "none") return [];
  const recorded = expected.map(({ item, set }) => set ?? (item === undefined ? [] : [item]));
  const theirs = withoutRepeatedMarks(recorded.map((group) => group.filter(({ kind }) => kinds.includes(kind))));
  // Each kind has a watch of its own.
  const sorted = [...found].sort((a, b) => (a.revision ?? 0) - (b.revision ?? 0));
  const own = withoutRepeatedMarks(sorted.map((transition) => [transition]));
  const milestones = (groups: readonly Group[]): readonly (readonly string[])[] =>
    groups.map((group) =>
      group.flatMap((transition) =>
        milestonesOf(transition, level === "creationsAndDeletions", mask).filter(isOfController),
      ),
    );
  const wholes = (groups: readonly Group[]): readonly (readonly string[])[] =>
    groups.map((group) => group.flatMap((transition) => textOf(transition, mask) ?? []));
  switch (level) {
    case "total":
      return compareOrder(wholes(own), wholes(theirs));
    case "perObject":
      return compareBags("object", sequencesOf(own.flat(), mask), sequencesOf(theirs.flat(), mask));
    case "milestones":
      return compareOrder(milestones(own), milestones(theirs));
    default:
      return compareBags("transition", milestones(own).flat(), milestones(theirs).flat());
  }
}

/** The steps change templates and strategies. */
function isOfController(milestone: string): boolean {
  return !/ spec\.(template|strategy)/.test(milestone);
}

/** All transitions of each object in their order. */
function sequencesOf(transitions: readonly Transition[], mask: Mask): readonly string[] {
  const byObject = new Map<string, string[]>();
  for (const transition of transitions) {
    const key = `${transition.kind}/${transition.name}`;
    byObject.set(key, [...(byObject.get(key) ?? []), ...[textOf(transition, mask)].flatMap((text) => text ?? [])]);
  }
  return [...byObject.values()].map((texts) => texts.join("; "));
}

/** Lists the difference of the bags, or where the order differs first. */
function compareOrder(own: readonly (readonly string[])[], theirs: readonly (readonly string[])[]): readonly string[] {
  const different = compareBags("transition", own.flat(), theirs.flat());
  if (different.length > 0) return different;
  // A controller removes the finalizers of pods at the same time.
  const isOrdered = (text: string): boolean => !/^Pod\/\S+ metadata\.finalizers null$/.test(text);
  const found = own.flat().filter(isOrdered);
  let at = 0;
  for (const group of theirs.map((texts) => texts.filter(isOrdered))) {
    const misplaced = compareBags(`order at ${at}`, found.slice(at, at + group.length), group);
    if (misplaced.length > 0) return misplaced;
    at += group.length;
  }
  return [];
}

/**
 * Kubernetes marks a pod again when its grace period becomes 0. Whether a pod loses its last finalizer before its node
 * deletes it, or by that is deleted, depends on the speed of both.
 */
function withoutRepeatedMarks(groups: readonly Group[]): readonly Group[] {
  const keyOf = ({ kind, name }: Transition): string => `${kind}/${name}`;
  const gone = groups.flat().filter(({ verb, kind }) => verb === "deleted" && kind === "Pod");
  const deleted = new Set(gone.map(keyOf));
  const marked = new Set<string>();
  const withoutRepetition = (transition: Transition): Transition => {
    const key = keyOf(transition);
    const set = { ...transition.set };
    if (marked.has(key)) {
      delete set["metadata.deletionTimestamp"];
      delete set["metadata.deletionGracePeriodSeconds"];
    }
    if (set["metadata.deletionTimestamp"] !== undefined) marked.add(key);
    if (deleted.has(key)) delete set["metadata.finalizers"];
    return { ...transition, set };
  };
  return groups.map((group) => group.map(withoutRepetition));
}

/** Shared nodes are assigned in turn, so they depend on the order of parallel creations. */
function maskNode(text: string): string {
  return text.replace(/"nodeName":"shared-\d"/, '"nodeName":"shared"');
}

function compareBags(what: string, found: readonly string[], wanted: readonly string[]): readonly string[] {
  const rest = [...wanted];
  const extra = found.filter((text) => {
    const index = rest.indexOf(text);
    if (index >= 0) rest.splice(index, 1);
    return index < 0;
  });
  return [...extra.map((text) => `${what} + ${text}`), ...rest.map((text) => `${what} - ${text}`)];
}

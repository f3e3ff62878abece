/** Compares what a scenario's objects did with its recording, as strictly as recordings of the same scenario agree. */
import type { Event } from "../../../api/core/event/schema.ts";
import type { ApiObject } from "../../../api/kind.ts";
import { type Mask, milestonesOf, trim, trimEvent } from "./normalize.ts";
import type { Json, RecordedEvent, Scenario, Transition } from "./scenario.ts";

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
    (stable.events === "all" ? ` ${event.count}` : "");
  const differing = (stable.eventsDiffer ?? []).join(" ");
  const isComparable = (event: RecordedEvent): boolean =>
    event.reason !== "FailedCreate" && !differing.includes(event.reason) && kinds.includes(event.kind);
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

function compareTransitions(
  expected: Scenario["expect"]["transitions"],
  found: readonly Transition[],
  {
    level,
    kinds,
    mask,
  }: { readonly level: string | undefined; readonly kinds: readonly string[]; readonly mask: Mask },
): readonly string[] {
  if (level === "none") return [];
  const recorded = expected
    .flatMap(({ item, set }) => set ?? (item === undefined ? [] : [item]))
    .filter(({ kind }) => kinds.includes(kind));
  const isController = (text: string): boolean => !/ spec\.(template|strategy)/.test(text);
  const [own = [], theirs = []] = [found, recorded].map((list) =>
    withoutRepeatedMarks(list)
      .flatMap((transition) => milestonesOf(transition, level === "creationsAndDeletions", mask))
      .filter(isController),
  );
  return compareBags("transition", own, theirs);
}

/**
 * Kubernetes marks a pod again when its grace period becomes 0. Whether a pod loses its last finalizer before its node
 * deletes it, or by that is deleted, depends on the speed of both.
 */
function withoutRepeatedMarks(list: readonly Transition[]): readonly Transition[] {
  const keyOf = ({ kind, name }: Transition): string => `${kind}/${name}`;
  const deleted = new Set(list.filter(({ verb, kind }) => verb === "deleted" && kind === "Pod").map(keyOf));
  const marked = new Set<string>();
  return list.map((transition) => {
    const key = keyOf(transition);
    const { "metadata.deletionTimestamp": mark, "metadata.finalizers": finalizers, ...set } = transition.set ?? {};
    if (mark === undefined && finalizers === undefined) return transition;
    const isRepeated = mark !== undefined && marked.has(key);
    if (mark !== undefined) marked.add(key);
    return {
      ...transition,
      set: {
        ...set,
        ...(mark === undefined || isRepeated ? {} : { "metadata.deletionTimestamp": mark }),
        ...(finalizers === undefined || deleted.has(key) ? {} : { "metadata.finalizers": finalizers }),
      },
    };
  });
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

/** Kubernetes' warnings of custom resources: any finalizer is accepted; odd names are reported when they are added. */
import { goQuote } from "../../../schema/value/go-quote.ts";
import type { ApiObject } from "../../kind.ts";
import { qualifiedName } from "../../meta/validation/names.ts";
import { STANDARD_FINALIZERS } from "../../meta/validation/object-meta.ts";

export function finalizerWarnings(object: ApiObject, previous: ApiObject | undefined): readonly string[] {
  const old = new Set(previous?.metadata?.finalizers);
  const added = new Set((object.metadata?.finalizers ?? []).filter((finalizer) => !old.has(finalizer)));
  return [...added].sort().flatMap(problemsOf);
}

function problemsOf(finalizer: string): readonly string[] {
  const problems = [...qualifiedName(finalizer)];
  if (!finalizer.includes("/") && !STANDARD_FINALIZERS.has(finalizer)) {
    const advice = `prefer a domain-qualified finalizer name${finalizer.includes(".") ? " including a path (/)" : ""}`;
    problems.push(`${advice} to avoid accidental conflicts with other finalizer writers`);
  }
  return problems.map((problem) => `metadata.finalizers: ${goQuote(finalizer)}: ${problem}`);
}

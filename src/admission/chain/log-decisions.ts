/** Logs what admission plugins decide, at -v=4: each change and each denial, and that a request was admitted. */
import { andThen, type MaybePromise } from "../../std/async/maybe-promise.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { AdmissionRequest } from "./attributes.ts";

const LEVEL = 4;

type Phase = "mutate" | "validate";
type Run<S> = (step: S) => MaybePromise<void>;

/** `run` itself, unless decisions are logged. */
export function logDecisions<S extends { readonly plugin: { readonly name: string } }>(
  log: Logger,
  phase: Phase,
  request: AdmissionRequest,
  run: Run<S>,
): Run<S> {
  const lines = log.v(LEVEL);
  if (lines === undefined) return run;
  const { kind, operation, namespace, name, subresource } = request;
  const fields = { phase, operation, resource: kind.plural, ...(subresource === "" ? {} : { subresource }) };
  const object = { ...fields, namespace, name };
  return (step) => {
    const { plugin } = step;
    const before = request.object;
    const deny = (error: unknown): never => {
      lines.info("Admission plugin denied the request", { plugin: plugin.name, ...object, reason: String(error) });
      throw error;
    };
    let result: MaybePromise<void>;
    try {
      result = run(step);
    } catch (error) {
      return deny(error);
    }
    const report = (): void => {
      if (request.object !== before)
        lines.info("Admission plugin changed the object", { plugin: plugin.name, ...object });
    };
    return result instanceof Promise ? result.then(report, deny) : report();
  };
}

function logAdmitted(log: Logger, phase: Phase, { kind, operation, namespace, name }: AdmissionRequest): void {
  log.v(LEVEL)?.info("Admitted", { phase, operation, resource: kind.plural, namespace, name });
}

/** Calls `logAdmitted` once the steps have run. */
export function thenLogAdmitted(
  log: Logger,
  phase: Phase,
  request: AdmissionRequest,
  steps: MaybePromise<void>,
): MaybePromise<void> {
  return log.v(LEVEL) === undefined ? steps : andThen(steps, () => logAdmitted(log, phase, request));
}

/** A state of a pod's worker. Each state lists its legal successors, and its type permits no other transition. */
import type { PodStatus } from "../../../api/core/pod/schema.ts";
import type { PresentImage } from "../../images/image-manager.ts";
import type { ObservedSandbox } from "../../runtime/observation.ts";
import type { PodContext } from "../pod-context.ts";
import { generateStatus } from "../status/generate-status.ts";
import type { PlannedStart, PlannedWait } from "../worker/plan.ts";

/** The next state, with what it needs. Data, so that states do not import each other. */
export type Transition =
  | { readonly to: "admitting" }
  | { readonly to: "refused"; readonly message: string }
  | { readonly to: "mounting" }
  | { readonly to: "running" }
  | { readonly to: "pulling"; readonly start: PlannedStart; readonly sandbox: ObservedSandbox }
  | {
      readonly to: "starting";
      readonly start: PlannedStart;
      readonly sandbox: ObservedSandbox;
      readonly image: PresentImage;
    }
  | { readonly to: "backoff"; readonly waits: readonly PlannedWait[] }
  | { readonly to: "terminating" }
  | { readonly to: "terminated" }
  /** The worker ends. */
  | { readonly to: "gone" };

export type StateName = Exclude<Transition["to"], "gone">;

type TransitionTo<Name extends Transition["to"]> = Extract<Transition, { readonly to: Name }>;

export interface PodState {
  readonly name: StateName;
  readonly successors: readonly Transition["to"][];
  /** Does the work of the state and returns the transition to a successor. The worker repeats it after a failure. */
  next(pod: PodContext, current: Transition): Promise<Transition>;
  /** The status that the API server shows meanwhile. */
  status(pod: PodContext): PodStatus;
}

/** `next` receives the input of this state; its type permits only the transitions that `successors` lists. */
interface StateDefinition<Name extends StateName, Successor extends Transition["to"]> {
  readonly name: Name;
  readonly successors: readonly Successor[];
  next(pod: PodContext, current: TransitionTo<Name>): Promise<TransitionTo<NoInfer<Successor>>>;
  /** Default: the status of a pod whose containers may still run. */
  status?(pod: PodContext): PodStatus;
}

export function podState<Name extends StateName, Successor extends Transition["to"]>(
  state: StateDefinition<Name, Successor>,
): PodState {
  return { status: (pod) => generateStatus(pod, false), ...state };
}

/** Names the step of providing a volume that failed, as kubelet's events do. */

import { goQuote } from "../../schema/value/go-quote.ts";

export type VolumeEvent = "FailedMount" | "FailedMapVolume" | "FailedAttachVolume";

/** Why a volume cannot be resolved to a plugin and its source; nothing was mounted. */
export class UnresolvedError extends Error {
  override readonly name: string = "UnresolvedError";
}

/** No plugin of the agent is for the volume. */
export function newPluginError(volume: string): UnresolvedError {
  return new UnresolvedError(
    `failed to get Plugin from volumeSpec for volume ${goQuote(volume)} err=no volume plugin matched`,
  );
}

export class OperationError extends Error {
  override readonly name = "OperationError";
  /** `MountVolume.SetUp` */
  readonly operation: string;
  /** The volume's name in the event. */
  readonly volume: string;
  /** Undefined: the volume waits for another component, and no event is recorded. */
  readonly event: VolumeEvent | undefined;

  constructor(operation: string, volume: string, event: VolumeEvent | undefined, cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause });
    this.operation = operation;
    this.volume = volume;
    this.event = event;
  }
}

export interface OperationContext {
  readonly volume: string;
  readonly event: VolumeEvent | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Runs one step and wraps its error. The signal's reason is passed on unchanged. */
export async function runOperation<T>(
  name: string,
  { volume, event, signal }: OperationContext,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    signal?.throwIfAborted();
    throw error instanceof OperationError || error instanceof UnresolvedError
      ? error
      : new OperationError(name, volume, event, error);
  }
}

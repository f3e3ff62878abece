/** Converts signal names between the API and CRI: `SIGRTMIN+3` and `SIGRTMINPLUS3`. */
import type { Container } from "../../../api/core/container/schema.ts";
import type { ContainerStatus } from "../../../api/core/container/status.ts";
import type { ContainerConfig } from "../../runtime/cri/container.ts";

type RuntimeSignal = NonNullable<ContainerConfig["stopSignal"]>;
type ApiSignal = NonNullable<ContainerStatus["stopSignal"]>;

/** Undefined: the image's signal, or the runtime's default. */
export function toRuntimeSignal({ lifecycle }: Container): RuntimeSignal | undefined {
  return lifecycle?.stopSignal?.replace("+", "PLUS").replace("-", "MINUS") as RuntimeSignal | undefined;
}

export function toApiSignal(signal: string): ApiSignal {
  return signal.replace("PLUS", "+").replace("MINUS", "-") as ApiSignal;
}

/** The runtime of `fake-node.ts` with a real containerd, in real time. Programs are shell scripts. */

import { createCriClient } from "../../agent/runtime/cri-client.ts";
import { systemClock } from "../../std/time/clock.ts";
import type { NodeRuntime } from "./fake-node.ts";
import type { Program } from "./fake-runtime.ts";
import type { PrivateContainerd } from "./private-containerd.ts";

const MARKER = "/dev/shm/ran";

/** A NodeRuntime with a containerd that several nodes may use one after the other. */
export function containerdNodeRuntime({ endpoint, image }: PrivateContainerd): NodeRuntime {
  const client = createCriClient({ endpoint, requestTimeoutMs: 60_000, clock: systemClock });
  return {
    runtime: client.runtime,
    images: client.images,
    clock: systemClock,
    cgroupHierarchy: "/sys/fs/cgroup",
    container(name, program, then) {
      // A pod's containers share /dev/shm, which exists as long as the sandbox.
      const script =
        then === undefined
          ? toScript(program)
          : `if [ -e ${MARKER}-${name} ]; then ${toScript(then)}; else echo > ${MARKER}-${name}; ${toScript(program)}; fi`;
      return { name, image, imagePullPolicy: "Never", command: ["sh", "-c", script] };
    },
    [Symbol.asyncDispose]: async () => client[Symbol.dispose](),
  };
}

function toScript({ exitAfterMs, exitCode = 0, stopAfterMs = 0, stopCode = 0 }: Program): string {
  const onStop = stopAfterMs === 0 ? `exit ${stopCode}` : `sleep ${stopAfterMs / 1000}; exit ${stopCode}`;
  const trap = `trap '${Number.isFinite(stopAfterMs) ? onStop : ":"}' TERM`;
  const end =
    exitAfterMs === undefined ? "while :; do sleep 0.1; done" : `sleep ${exitAfterMs / 1000}; exit ${exitCode}`;
  return `${trap}; ${end}`;
}

/** Tests that an implementation conforms to `Runtime`; run with the fake and with a real runtime. */
import type { Test } from "tap";
import type { PodSandboxConfig } from "../../agent/runtime/cri/sandbox.ts";
import { labels, observe } from "../../agent/runtime/observation.ts";
import { type ImageService, isNotFound, type Runtime } from "../../agent/runtime/runtime.ts";

export interface ConformanceSubject {
  readonly runtime: Runtime;
  readonly images: ImageService;
  /** A present image with the programs below. */
  readonly image: string;
  /** Runs until it is stopped; exits at once then. */
  readonly sleeper: { readonly name: string; readonly command: readonly string[] };
  /** Exits with code 3 soon after its start. */
  readonly failing: { readonly name: string; readonly command: readonly string[] };
  /** Directory for logs. */
  readonly logDirectory: string;
  /** Waits, or advances the fake clock. */
  readonly advance: (milliseconds: number) => Promise<void>;
}

export async function runtimeConformance(t: Test, subject: ConformanceSubject): Promise<void> {
  const { runtime, images } = subject;
  const uid = "conformance-uid";
  const config: PodSandboxConfig = {
    metadata: { name: "conformance", uid, namespace: "default", attempt: 0 },
    hostname: "conformance",
    logDirectory: subject.logDirectory,
    labels: { [labels.podUid]: uid, [labels.podName]: "conformance", [labels.podNamespace]: "default" },
    linux: { securityContext: { namespaceOptions: { network: "POD", pid: "CONTAINER", ipc: "POD" } } },
  };
  const create = async (sandboxId: string, program: ConformanceSubject["sleeper"]): Promise<string> => {
    const created = await runtime.createContainer({
      podSandboxId: sandboxId,
      sandboxConfig: config,
      config: {
        metadata: { name: program.name, attempt: 0 },
        image: { image: subject.image },
        command: program.command,
        logPath: `${program.name}.log`,
        labels: { [labels.podUid]: uid, [labels.containerName]: program.name },
      },
    });
    return created.containerId ?? "";
  };

  t.match(await runtime.version({}), { runtimeApiVersion: "v1" }, "version() names the API");
  const status = await runtime.status({});
  t.ok(
    status.status?.conditions?.some((each) => each.type === "RuntimeReady" && each.status === true),
    "status() reports that the runtime is ready",
  );
  t.ok(
    (await images.imageStatus({ image: { image: subject.image } })).image?.id,
    "imageStatus() finds a present image",
  );
  t.equal(
    (await images.imageStatus({ image: { image: "localhost/none:1" } })).image,
    undefined,
    "imageStatus() returns no image for an absent one",
  );

  const { podSandboxId: sandboxId = "" } = await runtime.runPodSandbox({ config });
  const sleeper = await create(sandboxId, subject.sleeper);
  t.equal(
    (await observe(runtime, uid)).containers[0]?.state,
    "created",
    "createContainer() does not start the container",
  );
  await runtime.startContainer({ containerId: sleeper });
  const failing = await create(sandboxId, subject.failing);
  await runtime.startContainer({ containerId: failing });
  await subject.advance(1_500);
  const observed = await observe(runtime, uid);
  t.equal(observed.sandboxes.length, 1, "a listing by label finds the sandbox");
  t.match(observed.sandboxes[0], { id: sandboxId, ready: true, hostNetwork: false });
  t.match(observed.sandboxes[0]?.ips[0], /^\d+\.\d+\.\d+\.\d+$/, "the sandbox has an address");
  const find = (id: string) => observed.containers.find((each) => each.id === id);
  t.match(find(sleeper), { name: subject.sleeper.name, state: "running" });
  t.match(find(failing), { state: "exited", exitCode: 3, reason: "Error" });
  t.ok((find(sleeper)?.startedAt ?? 0) > 0, "times are in milliseconds");

  await runtime.stopContainer({ containerId: sleeper, timeout: 5n });
  t.equal((await observe(runtime, uid)).containers.find((each) => each.id === sleeper)?.state, "exited");
  await runtime.stopContainer({ containerId: sleeper, timeout: 0n });
  t.pass("stopContainer() may be repeated");
  await runtime.removeContainer({ containerId: failing });
  await runtime.removeContainer({ containerId: failing });
  t.pass("removeContainer() may be repeated");
  await t.rejects(
    runtime.containerStatus({ containerId: failing }).catch((error: unknown) => {
      t.ok(isNotFound(error), "a removed container is not found");
      throw error;
    }),
  );
  await runtime.stopPodSandbox({ podSandboxId: sandboxId });
  await runtime.stopPodSandbox({ podSandboxId: sandboxId });
  t.equal((await observe(runtime, uid)).sandboxes[0]?.ready, false, "a stopped sandbox is listed as not ready");
  await runtime.removePodSandbox({ podSandboxId: sandboxId });
  await runtime.removePodSandbox({ podSandboxId: sandboxId });
  t.same(await observe(runtime, uid), { sandboxes: [], containers: [] }, "removePodSandbox() removes its containers");

  const cancelled = new AbortController();
  cancelled.abort(new Error("cancelled"));
  await t.rejects(runtime.listContainers({}, cancelled.signal), { message: "cancelled" }, "an aborted call rejects");
}

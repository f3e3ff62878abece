/** The container runtime: socket, CRI, conditions, the image of sandboxes, OOM scores. */
import { type Finding, finding, findingOf } from "./finding.ts";
import type { HostReader } from "./host-reader.ts";
import type { RuntimeFacts } from "./runtime-facts.ts";
import type { DoctorSubject } from "./subject.ts";

export interface RuntimeSubject {
  /** The programs that a runtime of svc up lacks; undefined: svc starts no runtime. */
  readonly missingPrograms: readonly string[] | undefined;
  /** Whether the runtime should run now. */
  readonly isExpected: boolean;
  readonly mayLowerOomScore: boolean;
}

export function checkRuntime(facts: RuntimeFacts, subject: RuntimeSubject): readonly Finding[] {
  const { missingPrograms } = subject;
  const programs =
    missingPrograms === undefined
      ? []
      : [
          findingOf(
            "managed-runtime",
            "containerd, runc and the CNI plugins are installed",
            missingPrograms.length === 0 ? undefined : missingPrograms.join("; "),
          ),
        ];
  const socket = checkSocket(facts, subject);
  if (facts.socket?.kind !== "socket") return [...programs, socket];
  return [...programs, socket, ...checkAnswers(facts, subject)];
}

function checkSocket({ path, socket }: RuntimeFacts, { isExpected }: RuntimeSubject): Finding {
  const id = "cri-socket";
  if (socket === undefined && !isExpected) return finding(id, "ok", `${path} does not exist; svc up creates it`);
  if (socket === undefined) return finding(id, "error", `${path} does not exist, or cannot be accessed`);
  if (socket.kind !== "socket") return finding(id, "error", `${path} is not a socket`);
  const others = socket.mode & 0o006;
  if (others !== 0) return finding(id, "warning", `${path} is open to all users (mode ${octal(socket.mode)})`);
  return finding(id, "ok", path);
}

function octal(mode: number): string {
  return (mode & 0o7777).toString(8).padStart(4, "0");
}

function checkAnswers(facts: RuntimeFacts, { isExpected, mayLowerOomScore }: RuntimeSubject): readonly Finding[] {
  const { path, version, status, error, settings } = facts;
  if (version === undefined || status === undefined) {
    if (!isExpected) return [finding("cri-version", "ok", `nothing answers at ${path} while svc up does not run`)];
    return [finding("cri-version", "error", error ?? "no answer")];
  }
  const { runtimeName = "unknown runtime", runtimeVersion = "", runtimeApiVersion = "" } = version;
  const condition = (type: string) => (status.status?.conditions ?? []).find((each) => each.type === type);
  const ready = (id: "cri-runtime-ready" | "cri-network-ready", type: string): Finding => {
    const { status: isTrue, reason = "", message = "" } = condition(type) ?? {};
    return findingOf(id, type, isTrue === true ? undefined : `${type} is false: ${reason} ${message}`.trimEnd());
  };
  return [
    findingOf(
      "cri-version",
      `${runtimeName} ${runtimeVersion}, CRI ${runtimeApiVersion}`,
      runtimeApiVersion === "v1" ? undefined : `${runtimeName} ${runtimeVersion} serves CRI ${runtimeApiVersion}`,
    ),
    ready("cri-runtime-ready", "RuntimeReady"),
    ready("cri-network-ready", "NetworkReady"),
    checkSandboxImage(facts),
    checkOomScore(settings.restrictsOomScore, mayLowerOomScore),
  ];
}

function checkSandboxImage({ settings, hasSandboxImage }: RuntimeFacts): Finding {
  const id = "cri-sandbox-image";
  const { sandboxImage } = settings;
  if (sandboxImage === undefined) return finding(id, "ok", "the runtime does not report it");
  return findingOf(id, sandboxImage, hasSandboxImage === true ? undefined : `${sandboxImage} is missing`, "warning");
}

function checkOomScore(restricts: boolean | undefined, mayLower: boolean): Finding {
  const id = "cri-oom-score";
  if (mayLower) return finding(id, "ok", "CAP_SYS_RESOURCE is granted");
  if (restricts === true) return finding(id, "ok", "CAP_SYS_RESOURCE is missing, and the runtime restricts the scores");
  return finding(
    id,
    restricts === false ? "error" : "warning",
    `CAP_SYS_RESOURCE is missing${restricts === false ? ", and restrict_oom_score_adj is false" : ""}`,
  );
}

const CAP_SYS_RESOURCE = 24n;

export async function readRuntimeSubject(host: HostReader, doctor: DoctorSubject): Promise<RuntimeSubject> {
  const status = (await host.readText("/proc/self/status")) ?? "";
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? "0";
  return {
    missingPrograms: doctor.managedRuntime?.missing,
    isExpected: doctor.managedRuntime === undefined || doctor.pid !== undefined,
    mayLowerOomScore: ((BigInt(`0x${effective}`) >> CAP_SYS_RESOURCE) & 1n) === 1n,
  };
}

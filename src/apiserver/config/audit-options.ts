/** The audit log of the `--audit-*` flags. */
import type { AuditConfig } from "../../audit/auditor.ts";
import type { BackendOptions } from "../../audit/backend.ts";
import type { ParsedFlags } from "../../flags/flag.ts";
import type { auditFlags } from "../flags/audit.ts";

type Flags = ParsedFlags<typeof auditFlags>;

const VERSIONS = ["audit.svc.io/v1", "audit.k8s.io/v1"];

/** Undefined when nothing is to be recorded. Throws one sentence for flags that contradict each other. */
export function auditConfig(flags: Flags): AuditConfig | undefined {
  for (const backend of ["log", "webhook"] as const) {
    if (!VERSIONS.includes(flags[`audit-${backend}-version`])) {
      const allowed = VERSIONS.map((version) => JSON.stringify(version)).join(" ");
      throw new Error(`invalid group version, allowed versions are [${allowed}]: --audit-${backend}-version`);
    }
  }
  const { "audit-policy-file": policyFile, "audit-log-path": path, "audit-webhook-config-file": configFile } = flags;
  if (path === "" && configFile === "" && policyFile === "") return undefined;
  if (policyFile === "") throw new Error("--audit-log-path and --audit-webhook-config-file need --audit-policy-file");
  if (path === "" && configFile === "") {
    throw new Error("--audit-policy-file needs --audit-log-path or --audit-webhook-config-file");
  }
  const problems = [
    ...(path === "" ? [] : [...checkBackend(flags, "log"), ...checkLogFile(flags)]),
    ...(configFile === "" ? [] : checkBackend(flags, "webhook")),
  ];
  if (problems.length > 0) throw new Error(problems.length === 1 ? problems[0] : `[${problems.join(", ")}]`);
  return {
    policyFile,
    log:
      path === ""
        ? undefined
        : {
            path,
            format: flags["audit-log-format"],
            version: flags["audit-log-version"],
            maxSizeMb: flags["audit-log-maxsize"],
            maxBackups: flags["audit-log-maxbackup"],
            maxAgeDays: flags["audit-log-maxage"],
            compress: flags["audit-log-compress"],
            ...backendOptions(flags, "log"),
          },
    webhook:
      configFile === ""
        ? undefined
        : {
            configFile,
            version: flags["audit-webhook-version"],
            initialBackoffMs: flags["audit-webhook-initial-backoff"],
            ...backendOptions(flags, "webhook"),
          },
  };
}

/** Kubernetes' checks of a backend that is used, in its words. */
function checkBackend(flags: Flags, backend: "log" | "webhook"): readonly string[] {
  const [event, batch] = (["event", "batch"] as const).map(
    (what) => flags[`audit-${backend}-truncate-max-${what}-size`],
  );
  const truncate = `invalid audit truncate ${backend} max`;
  return [
    ...(flags[`audit-${backend}-mode`] === "batch" ? checkBatch(flags, backend) : []),
    ...(event! <= 0 ? [`${truncate} event size ${event}, must be a positive number`] : []),
    ...(event! > 0 && batch! < event!
      ? [`${truncate} batch size ${batch}, must be greater than max event size (${event})`]
      : []),
  ];
}

/** The first problem only. */
function checkBatch(flags: Flags, backend: "log" | "webhook"): readonly string[] {
  const isThrottled = flags[`audit-${backend}-batch-throttle-enable`];
  const figures = [
    ["buffer size", flags[`audit-${backend}-batch-buffer-size`]],
    ["max batch size", flags[`audit-${backend}-batch-max-size`]],
    ["throttle QPS", isThrottled ? flags[`audit-${backend}-batch-throttle-qps`] : 1],
    ["throttle burst", isThrottled ? flags[`audit-${backend}-batch-throttle-burst`] : 1],
  ] as const;
  const wrong = figures.find(([, figure]) => figure <= 0);
  return wrong === undefined
    ? []
    : [`invalid audit batch ${backend} ${wrong[0]} ${wrong[1]}, must be a positive number`];
}

function checkLogFile(flags: Flags): readonly string[] {
  return (["maxage", "maxbackup", "maxsize"] as const).flatMap((name) => {
    const value = flags[`audit-log-${name}`];
    return value < 0 ? [`--audit-log-${name} ${value} can't be a negative number`] : [];
  });
}

function backendOptions(flags: Flags, backend: "log" | "webhook"): BackendOptions {
  const qps = flags[`audit-${backend}-batch-throttle-qps`];
  const isThrottled = flags[`audit-${backend}-batch-throttle-enable`];
  const burst = flags[`audit-${backend}-batch-throttle-burst`];
  return {
    mode: flags[`audit-${backend}-mode`],
    batch: {
      bufferSize: flags[`audit-${backend}-batch-buffer-size`],
      maxSize: flags[`audit-${backend}-batch-max-size`],
      maxWaitMs: flags[`audit-${backend}-batch-max-wait`],
      throttle: isThrottled ? { qps, burst } : undefined,
    },
    truncate: {
      enabled: flags[`audit-${backend}-truncate-enabled`],
      maxEventSize: flags[`audit-${backend}-truncate-max-event-size`],
      maxBatchSize: flags[`audit-${backend}-truncate-max-batch-size`],
    },
  };
}

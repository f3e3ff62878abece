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

function backendOptions(flags: Flags, backend: "log" | "webhook"): BackendOptions {
  const qps = flags[`audit-${backend}-batch-throttle-qps`];
  const isThrottled = flags[`audit-${backend}-batch-throttle-enable`];
  const burst = flags[`audit-${backend}-batch-throttle-burst`];
  if (isThrottled && (qps <= 0 || burst <= 0)) {
    const names = ["qps", "burst"].map((name) => `--audit-${backend}-batch-throttle-${name}`).join(" and ");
    throw new Error(`--audit-${backend}-batch-throttle-enable needs positive ${names}`);
  }
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

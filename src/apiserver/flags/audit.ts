import { flag, section } from "../../flags/flag.ts";
import { duration } from "../../flags/types/duration.ts";
import { float, int } from "../../flags/types/number.ts";
import { bool, file, groupVersion, oneOf } from "../../flags/types/text.ts";

export const auditFlags = section("Audit", {
  "audit-log-path": flag(file, "", "File for audit records; - is standard out."),
  "audit-log-mode": flag(
    oneOf("batch", "blocking", "blocking-strict"),
    "blocking",
    "batch, blocking, blocking-strict.",
  ),
  "audit-webhook-mode": flag(
    oneOf("batch", "blocking", "blocking-strict"),
    "batch",
    "batch, blocking, blocking-strict.",
  ),
  "audit-log-format": flag(oneOf("legacy", "json"), "json", "legacy (one-line text) or json."),
  "audit-log-version": flag(groupVersion, "audit.svc.io/v1", "Group and version of serialized events."),
  "audit-webhook-version": flag(groupVersion, "audit.svc.io/v1", "Group and version of serialized events."),
  "audit-log-maxage": flag(
    int({ min: 0 }),
    0,
    "Retention days; old files kept (0 = unlimited); rotation size in MB; gzip rotated files.",
  ),
  "audit-log-maxbackup": flag(
    int({ min: 0 }),
    0,
    "Retention days; old files kept (0 = unlimited); rotation size in MB; gzip rotated files.",
  ),
  "audit-log-maxsize": flag(
    int({ min: 0 }),
    0,
    "Retention days; old files kept (0 = unlimited); rotation size in MB; gzip rotated files.",
  ),
  "audit-log-compress": flag(
    bool,
    false,
    "Retention days; old files kept (0 = unlimited); rotation size in MB; gzip rotated files.",
  ),
  "audit-log-batch-buffer-size": flag(int({ min: 1 }), 10000, "Buffer before batching (batch mode)."),
  "audit-webhook-batch-buffer-size": flag(int({ min: 1 }), 10000, "Buffer before batching (batch mode)."),
  "audit-log-batch-max-size": flag(int({ min: 1 }), 1, "Max batch size."),
  "audit-webhook-batch-max-size": flag(int({ min: 1 }), 400, "Max batch size."),
  "audit-log-batch-max-wait": flag(duration({ min: 0 }), 0, "Force-write wait."),
  "audit-webhook-batch-max-wait": flag(duration({ min: 0 }), 30_000, "Force-write wait."),
  "audit-log-batch-throttle-enable": flag(bool, false, "Throttling."),
  "audit-webhook-batch-throttle-enable": flag(bool, true, "Throttling."),
  "audit-log-batch-throttle-qps": flag(float({ min: 0 }), 0, "Average batches per second."),
  "audit-webhook-batch-throttle-qps": flag(float({ min: 0 }), 10, "Average batches per second."),
  "audit-log-batch-throttle-burst": flag(int({ min: 0 }), 0, "Burst."),
  "audit-webhook-batch-throttle-burst": flag(int({ min: 0 }), 15, "Burst."),
  "audit-log-truncate-enabled": flag(bool, false, "Truncate events and batches."),
  "audit-webhook-truncate-enabled": flag(bool, false, "Truncate events and batches."),
  "audit-log-truncate-max-batch-size": flag(int({ min: 1 }), 10485760, "Larger batches are split."),
  "audit-webhook-truncate-max-batch-size": flag(int({ min: 1 }), 10485760, "Larger batches are split."),
  "audit-log-truncate-max-event-size": flag(
    int({ min: 1 }),
    102400,
    "Larger events lose request and response; if still too large the event is dropped.",
  ),
  "audit-webhook-truncate-max-event-size": flag(
    int({ min: 1 }),
    102400,
    "Larger events lose request and response; if still too large the event is dropped.",
  ),
  "audit-policy-file": flag(file, "", "Audit policy file."),
  "audit-webhook-config-file": flag(file, "", "Connection-config file for the webhook backend."),
  "audit-webhook-initial-backoff": flag(duration({ min: 0 }), 10_000, "Wait before retrying the first failed request."),
});

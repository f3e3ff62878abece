import { flag, section } from "../../flags/flag.ts";
import { duration } from "../../flags/types/duration.ts";
import { float, int } from "../../flags/types/number.ts";
import { bool, file, groupVersion, oneOf } from "../../flags/types/text.ts";

export const auditFlags = section("Audit", {
  "audit-log-path": flag(file, "", "File for audit records; - is standard out."),
  "audit-log-mode": flag(
    oneOf("batch", "blocking", "blocking-strict"),
    "blocking",
    "How events reach the log: batch, in the background; blocking, before the response; " +
      "blocking-strict, failing the request when it fails.",
  ),
  "audit-webhook-mode": flag(
    oneOf("batch", "blocking", "blocking-strict"),
    "batch",
    "How events reach the webhook: batch, in the background; blocking, before the response; " +
      "blocking-strict, failing the request when it fails.",
  ),
  "audit-log-format": flag(
    oneOf("legacy", "json"),
    "json",
    "Format of records: legacy is one line of text, json is structured.",
  ),
  "audit-log-version": flag(groupVersion, "audit.svc.io/v1", "Group and version of the events written to the log."),
  "audit-webhook-version": flag(
    groupVersion,
    "audit.svc.io/v1",
    "Group and version of the events written to the webhook.",
  ),
  "audit-log-maxage": flag(int(), 0, "Days that rotated audit files are kept."),
  "audit-log-maxbackup": flag(int(), 0, "Rotated audit files that are kept; 0 keeps all."),
  "audit-log-maxsize": flag(int(), 0, "Size in MB at which the audit file is rotated."),
  "audit-log-compress": flag(bool, false, "Compress rotated audit files with gzip."),
  "audit-log-batch-buffer-size": flag(int(), 10_000, "Events that wait to be batched for the log; batch mode only."),
  "audit-webhook-batch-buffer-size": flag(
    int(),
    10_000,
    "Events that wait to be batched for the webhook; batch mode only.",
  ),
  "audit-log-batch-max-size": flag(int(), 1, "Events in a batch for the log, at most; batch mode only."),
  "audit-webhook-batch-max-size": flag(int(), 400, "Events in a batch for the webhook, at most; batch mode only."),
  "audit-log-batch-max-wait": flag(
    duration({ min: 0 }),
    0,
    "Longest wait before a batch for the log is written although it is not full; batch mode only.",
  ),
  "audit-webhook-batch-max-wait": flag(
    duration({ min: 0 }),
    30_000,
    "Longest wait before a batch for the webhook is written although it is not full; batch mode " + "only.",
  ),
  "audit-log-batch-throttle-enable": flag(bool, false, "Limit the rate of batches for the log; batch mode only."),
  "audit-webhook-batch-throttle-enable": flag(
    bool,
    true,
    "Limit the rate of batches for the webhook; batch mode only.",
  ),
  "audit-log-batch-throttle-qps": flag(float(), 0, "Batches a second for the log, on average; batch mode only."),
  "audit-webhook-batch-throttle-qps": flag(
    float(),
    10,
    "Batches a second for the webhook, on average; batch mode only.",
  ),
  "audit-log-batch-throttle-burst": flag(
    int(),
    0,
    "Batches for the log that may go out at once after a pause; batch mode only.",
  ),
  "audit-webhook-batch-throttle-burst": flag(
    int(),
    15,
    "Batches for the webhook that may go out at once after a pause; batch mode only.",
  ),
  "audit-log-truncate-enabled": flag(bool, false, "Cut events and batches for the log that are too large."),
  "audit-webhook-truncate-enabled": flag(bool, false, "Cut events and batches for the webhook that are too large."),
  "audit-log-truncate-max-batch-size": flag(int(), 10_485_760, "Bytes of a batch for the log; larger ones are split."),
  "audit-webhook-truncate-max-batch-size": flag(
    int(),
    10_485_760,
    "Bytes of a batch for the webhook; larger ones are split.",
  ),
  "audit-log-truncate-max-event-size": flag(
    int(),
    102_400,
    "Bytes of an event for the log; larger ones lose request and response, and if still too large " +
      "the event is dropped.",
  ),
  "audit-webhook-truncate-max-event-size": flag(
    int(),
    102_400,
    "Bytes of an event for the webhook; larger ones lose request and response, and if still too " +
      "large the event is dropped.",
  ),
  "audit-policy-file": flag(file, "", "Audit policy file."),
  "audit-webhook-config-file": flag(file, "", "Connection-config file for the webhook backend."),
  "audit-webhook-initial-backoff": flag(duration({ min: 0 }), 10_000, "Wait before retrying the first failed request."),
});

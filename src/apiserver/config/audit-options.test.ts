import t from "tap";
import { defaultFlags } from "../../flags/flag.ts";
import { auditFlags } from "../flags/audit.ts";
import { auditConfig } from "./audit-options.ts";

type Flags = Parameters<typeof auditConfig>[0];

const read = (flags: Partial<Flags>) =>
  auditConfig({ ...defaultFlags(auditFlags), "audit-policy-file": "/policy", "audit-log-path": "/log", ...flags });

t.test("auditConfig() rejects figures in Kubernetes' words", async (t) => {
  const rows: readonly (readonly [flags: Partial<Flags>, message: string])[] = [
    [{ "audit-log-maxage": -1 }, "--audit-log-maxage -1 can't be a negative number"],
    [
      { "audit-log-maxsize": -2, "audit-log-maxbackup": -3 },
      "[--audit-log-maxbackup -3 can't be a negative number, --audit-log-maxsize -2 can't be a negative number]",
    ],
    [
      { "audit-log-mode": "batch", "audit-log-batch-max-size": 0 },
      "invalid audit batch log max batch size 0, must be a positive number",
    ],
    [
      { "audit-log-mode": "batch", "audit-log-batch-buffer-size": 0, "audit-log-batch-max-size": 0 },
      "invalid audit batch log buffer size 0, must be a positive number",
    ],
    [
      { "audit-log-mode": "batch", "audit-log-batch-throttle-enable": true },
      "invalid audit batch log throttle QPS 0, must be a positive number",
    ],
    [
      { "audit-log-truncate-max-event-size": 0 },
      "invalid audit truncate log max event size 0, must be a positive number",
    ],
    [
      { "audit-log-truncate-max-batch-size": 1 },
      "invalid audit truncate log max batch size 1, must be greater than max event size (102400)",
    ],
    [
      { "audit-webhook-config-file": "/webhook", "audit-webhook-batch-throttle-burst": 0 },
      "invalid audit batch webhook throttle burst 0, must be a positive number",
    ],
  ];
  for (const [flags, message] of rows) t.throws(() => read(flags), { message }, message);
});

t.test("auditConfig() ignores figures of a backend or mode that is not used", async (t) => {
  t.match(read({ "audit-log-batch-max-size": 0, "audit-webhook-batch-max-size": 0 }), { log: { path: "/log" } });
});

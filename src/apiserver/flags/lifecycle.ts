import { flag, section } from "../../flags/flag.ts";
import { duration } from "../../flags/types/duration.ts";
import { gateSettings } from "../../flags/types/gate-settings.ts";
import { strings } from "../../flags/types/list.ts";
import { vmodule } from "../../flags/types/logging.ts";
import { metricLabels } from "../../flags/types/metric-labels.ts";
import { int, level } from "../../flags/types/number.ts";
import { bytes } from "../../flags/types/quantity.ts";
import { bool, file, minorVersion, oneOf, version } from "../../flags/types/text.ts";
import { isEmulatedVersion } from "./values.ts";

export const lifecycleFlags = section("Lifecycle, limits and logging", {
  "livez-grace-period": flag(
    duration({ min: 0 }),
    0,
    "Time after start during which /livez assumes unfinished post-start hooks will succeed.",
  ),
  "shutdown-delay-duration": flag(
    duration({ min: 0 }),
    0,
    "Delay before termination; requests are served normally, /healthz and /livez succeed, /readyz fails at " +
      "once; graceful termination starts afterwards.",
  ),
  "shutdown-send-retry-after": flag(
    bool,
    false,
    "During drain, new requests get status 429 with Retry-After and Connection: close.",
  ),
  "shutdown-watch-termination-grace-period": flag(
    duration({ min: 0 }),
    0,
    "Maximum wait for active watches to drain on shutdown.",
  ),
  "enable-priority-and-fairness": flag(
    bool,
    true,
    "Divide the sum of the next two flags among the priority levels and queue requests, as FlowSchemas and " +
      "PriorityLevelConfigurations specify, in place of two plain limits.",
  ),
  "max-requests-inflight": flag(
    int({ min: 0 }),
    400,
    "Non-mutating in-flight limit; with the next flag summed into the total concurrency limit (must be " +
      "positive) when priority and fairness is on; otherwise 0 disables the limit.",
  ),
  "max-mutating-requests-inflight": flag(
    int({ min: 0 }),
    200,
    "Mutating in-flight limit; summed with --max-requests-inflight when priority and fairness is on.",
  ),
  "request-timeout": flag(duration({ min: 1 }), 60_000, "Default request timeout."),
  "min-request-timeout": flag(
    int({ min: 1 }),
    1800,
    "Seconds; honoured only by watch, which picks a randomized timeout above it.",
  ),
  "max-connection-bytes-per-sec": flag(
    int({ min: 0 }),
    0,
    "Throttle per user connection for long-running requests; 0 means none.",
  ),
  "emulated-version": flag(
    strings({
      element: "svc=1.31, svc=1.32 or svc=1.33",
      accepts: isEmulatedVersion,
      sample: "svc=1.33",
      wrong: "svc=1.20",
    }),
    ["svc=1.33"],
    "<component>=<major.minor>; options svc=1.31..1.33; component defaults to svc.",
  ),
  "emulation-forward-compatible": flag(
    bool,
    false,
    "Auto-enable higher-priority future versions of beta+ APIs; only with an emulation version below the " +
      "binary version.",
  ),
  "runtime-config-emulation-forward-compatible": flag(
    bool,
    false,
    "When false the server fails to start if --runtime-config enables an API introduced after the emulation " +
      "version; true only allowed when emulation version is lower than binary.",
  ),
  "allow-metric-labels": flag(metricLabels, {}, "<Metric>,<Label>=<allowed values> allow-list."),
  "allow-metric-labels-manifest": flag(file, "", "File with the same mapping; the flag overrides it."),
  "disabled-metrics": flag(strings(), [], "Fully qualified metric names to disable; outranks showing hidden metrics."),
  "show-hidden-metrics-for-version": flag(minorVersion, "", "<major>.<minor> of the previous minor version only."),
  "logging-format": flag(oneOf("text"), "text", "Log format."),
  "log-flush-frequency": flag(duration({ min: 1 }), 5000, "Max time between flushes."),
  "log-text-info-buffer-size": flag(bytes("quantity"), 0, "Alpha.", { gate: "LoggingAlphaOptions" }),
  "log-text-split-stream": flag(bool, false, "Alpha.", { gate: "LoggingAlphaOptions" }),
  v: flag({ ...level, name: "int" }, 0, "Log verbosity; modules may have their own in --vmodule.", { short: "v" }),
  vmodule: flag(vmodule, [], "Text format only."),
  version: flag(
    version,
    "",
    "--version or --version=raw prints and exits; --version=vX.Y.Z... sets the reported version.",
  ),
  "feature-gates": flag(
    gateSettings("component:Gate=true,...", "svc"),
    {},
    "Turns feature gates on and off, by name, with svc: in front or without; repeatable. AllAlpha and " +
      "AllBeta set all gates of a stage.",
  ),
  help: flag(bool, false, "Print help.", { short: "h" }),
});

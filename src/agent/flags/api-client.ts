import { flag, section } from "../../flags/flag.ts";
import { duration } from "../../flags/types/duration.ts";
import { gateSettings } from "../../flags/types/gate-settings.ts";
import { vmodule } from "../../flags/types/logging.ts";
import { int32, level } from "../../flags/types/number.ts";
import { bytes } from "../../flags/types/quantity.ts";
import { bool, oneOf, version } from "../../flags/types/text.ts";
import { inFile } from "./deprecation.ts";

export const apiClientFlags = section("API client, events and logging", {
  "svc-api-qps": flag(
    int32({ min: 0 }),
    50,
    "QPS to the API server; 0 means default 50; excludes events and node heartbeat.",
    { config: "svcAPIQPS", deprecated: inFile },
  ),
  "svc-api-burst": flag(
    int32({ min: 0 }),
    100,
    "Burst to the API server; 0 means 100; excludes events and node heartbeat.",
    { config: "svcAPIBurst", deprecated: inFile },
  ),
  "svc-api-content-type": flag(
    oneOf("application/vnd.svc.protobuf", "application/vnd.kubernetes.protobuf", "application/json"),
    "application/vnd.svc.protobuf",
    "Content type of requests to the API server.",
    { config: "contentType", deprecated: inFile },
  ),
  "event-qps": flag(int32({ min: 0 }), 50, "Event creation rate; must be >= 0; 0 means 50.", {
    config: "eventRecordQPS",
    deprecated: inFile,
  }),
  "event-burst": flag(
    int32({ min: 0 }),
    100,
    "Event burst ceiling while staying within --event-qps; >= 0; 0 means 100.",
    { config: "eventBurst", deprecated: inFile },
  ),
  "logging-format": flag(oneOf("text", "json"), "text", "Log format.", {
    config: "logging.format",
    gate: "LoggingBetaOptions",
    deprecated: inFile,
  }),
  "log-flush-frequency": flag(duration({ min: 1 }), 5000, "Max time between log flushes.", {
    config: "logging.flushFrequency",
  }),
  "log-json-split-stream": flag(
    bool,
    false,
    "Alpha. Errors to stderr, info to stdout; need gate LoggingAlphaOptions.",
    { config: "logging.options.json.splitStream", gate: "LoggingAlphaOptions", deprecated: inFile },
  ),
  "log-text-split-stream": flag(
    bool,
    false,
    "Alpha. Errors to stderr, info to stdout; need gate LoggingAlphaOptions.",
    { config: "logging.options.text.splitStream", gate: "LoggingAlphaOptions", deprecated: inFile },
  ),
  "log-json-info-buffer-size": flag(
    bytes("string"),
    0,
    "Alpha. Info-message buffer size for split streams (bytes, 1K, 2Ki, 3M, 5Mi forms); 0 disables " +
      "buffering; need LoggingAlphaOptions.",
    { config: "logging.options.json.infoBufferSize", gate: "LoggingAlphaOptions", deprecated: inFile },
  ),
  "log-text-info-buffer-size": flag(
    bytes("string"),
    0,
    "Alpha. Info-message buffer size for split streams (bytes, 1K, 2Ki, 3M, 5Mi forms); 0 disables " +
      "buffering; need LoggingAlphaOptions.",
    { config: "logging.options.text.infoBufferSize", gate: "LoggingAlphaOptions", deprecated: inFile },
  ),
  v: flag(level, 0, "Log verbosity; modules may have their own in --vmodule.", {
    config: "logging.verbosity",
    short: "v",
  }),
  vmodule: flag(vmodule, [], "File-filtered logging, text format only.", { config: "logging.vmodule" }),
  version: flag(version, "", "Print version and exit; --version=vX.Y.Z... sets the reported version."),
  help: flag(bool, false, "Print help.", { short: "h" }),
  "feature-gates": flag(
    gateSettings("Gate=true,..."),
    {},
    "Turns feature gates on and off, by name; AllAlpha and AllBeta stand for all of a stage.",
    { config: "featureGates" },
  ),
});

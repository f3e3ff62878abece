import t from "tap";
import { logOptions } from "./log-options.ts";

t.test("logOptions() takes stream and buffer settings of the format in use", async (t) => {
  const flags = {
    v: 4,
    vmodule: [{ pattern: "pod*", level: 6 }],
    "log-flush-frequency": 5000,
    "log-text-split-stream": true,
    "log-text-info-buffer-size": 1024,
    "log-json-split-stream": false,
    "log-json-info-buffer-size": 0,
  };
  t.same(logOptions({ ...flags, "logging-format": "text" }), {
    format: "text",
    verbosity: 4,
    vmodule: [{ pattern: "pod*", level: 6 }],
    flushFrequencyMs: 5000,
    splitStream: true,
    infoBufferSize: 1024,
    isContextual: true,
  });
  t.match(logOptions({ ...flags, "logging-format": "json" }), { splitStream: false, infoBufferSize: 0 });
  t.equal(logOptions({ ...flags, "logging-format": "text" }, false).isContextual, false);
});

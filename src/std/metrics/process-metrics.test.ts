import t from "tap";
import { versionInfo } from "../version-info.ts";
import { MetricRegistry } from "./metrics.ts";
import { registerProcessMetrics } from "./process-metrics.ts";
import { formatMetrics } from "./text-format.ts";

t.test("registerProcessMetrics() reports the process under the names of Prometheus' clients", async (t) => {
  const registry = new MetricRegistry();
  using _measured = registerProcessMetrics(registry);
  const text = formatMetrics([registry], "prometheus");
  for (const name of ["cpu_seconds_total", "resident_memory_bytes", "open_fds", "max_fds", "start_time_seconds"]) {
    t.match(text, new RegExp(`^process_${name} [0-9.]*[1-9]`, "m"), name);
  }
  t.match(text, /^nodejs_heap_size_used_bytes [1-9]/m);
});

t.test("versionInfo() reports Kubernetes' release and the emulated one", async (t) => {
  t.match(versionInfo("v1.33.0", "1.32"), {
    major: "1",
    minor: "33",
    emulationMinor: "32",
    minCompatibilityMinor: "31",
  });
});

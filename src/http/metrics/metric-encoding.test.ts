import t from "tap";
import { chooseMetricEncoding } from "./metric-encoding.ts";

const text = (escaping = "underscores"): string => `text/plain; version=0.0.4; charset=utf-8; escaping=${escaping}`;
const open = (version: string, escaping = "underscores"): string =>
  `application/openmetrics-text; version=${version}; charset=utf-8; escaping=${escaping}`;
const proto = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily";

t.test("chooseMetricEncoding() takes the first known clause, and its scheme or that of one before it", async (t) => {
  for (const [accept, expected] of [
    [undefined, text()],
    ["", text()],
    ["*/*", text()],
    ["image/png", text()],
    ["text/plain;version=0.0.3", text()],
    ["text/plain;version=0.0.4;escaping=allow-utf-8", text("allow-utf-8")],
    ["text/plain;escaping=unknown", text()],
    ["*/*;escaping=dots", text("dots")],
    ["text/plain;q=0.5, application/openmetrics-text;q=0.9", open("0.0.1")],
    ["application/openmetrics-text;version=1.0.0;escaping=values", open("1.0.0", "values")],
    ["application/openmetrics-text;version=2.0.0, text/plain;q=0.5", text()],
    [`${proto};encoding=text;escaping=dots`, text("dots")],
    // Prometheus 3.
    [
      "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;" +
        "q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
      open("1.0.0", "allow-utf-8"),
    ],
  ] as const) {
    t.equal(chooseMetricEncoding(accept).mediaType, expected, accept ?? "without a header");
  }
});

t.test("chooseMetricEncoding() passes over encodings that are not offered", async (t) => {
  const accept = `application/openmetrics-text, ${proto};encoding=delimited;q=0.7;escaping=dots, text/plain;q=0.3`;
  t.equal(chooseMetricEncoding(accept, ["text"]).mediaType, text("dots"));
  t.same(chooseMetricEncoding(accept, ["text", "protobuf"]), {
    encoding: "protobuf",
    mediaType:
      "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited; escaping=dots",
  });
});

/** How a client gets metrics, by its Accept header: as Go's library for Prometheus negotiates. */
import { parseAccept } from "../negotiate.ts";

export type MetricEncoding = "text" | "openmetrics" | "protobuf";

export interface ChosenEncoding {
  readonly encoding: MetricEncoding;
  readonly mediaType: string;
}

/** How names beyond the classic characters are written. No metric here has one: all schemes write the same. */
const ESCAPINGS: ReadonlySet<string> = new Set(["allow-utf-8", "underscores", "dots", "values"]);
const OPENMETRICS_VERSIONS: readonly (string | undefined)[] = [undefined, "0.0.1", "1.0.0"];

/** A client that accepts none of the encodings gets text. The last known scheme up to the chosen clause applies. */
export function chooseMetricEncoding(
  accept: string | undefined,
  offered: readonly MetricEncoding[] = ["text", "openmetrics"],
): ChosenEncoding {
  let escaping = "underscores";
  for (const { type, params } of parseAccept(accept ?? "")) {
    const { version, proto, encoding } = params;
    if (ESCAPINGS.has(params.escaping ?? "")) escaping = params.escaping ?? "";
    const end = `charset=utf-8; escaping=${escaping}`;
    if (type === "text/plain" && (version === undefined || version === "0.0.4")) break;
    if (type === "application/openmetrics-text" && OPENMETRICS_VERSIONS.includes(version)) {
      const mediaType = `${type}; version=${version ?? "0.0.1"}; ${end}`;
      if (offered.includes("openmetrics")) return { encoding: "openmetrics", mediaType };
    }
    if (type === "application/vnd.google.protobuf" && proto === FAMILY && encoding === "delimited") {
      const mediaType = `${type}; proto=${FAMILY}; encoding=delimited; escaping=${escaping}`;
      if (offered.includes("protobuf")) return { encoding: "protobuf", mediaType };
    }
  }
  return { encoding: "text", mediaType: `text/plain; version=0.0.4; charset=utf-8; escaping=${escaping}` };
}

const FAMILY = "io.prometheus.client.MetricFamily";

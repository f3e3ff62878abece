/** The file of `--tracing-config-file`: a TracingConfiguration. */
import { readConfigurationFile } from "../../auth/configuration-file.ts";
import { int32, object, optional, pointer, string } from "../../schema/define.ts";
import { validateTracing } from "../../schema/validation/tracing.ts";
import type { TracingConfig } from "../../tracing/tracer.ts";

export const tracingConfiguration = object("apiserver/v1beta1.TracingConfiguration", {
  apiVersion: optional(0, string),
  kind: optional(0, string),
  endpoint: pointer(0, string),
  samplingRatePerMillion: pointer(0, int32),
});

const VERSIONS = ["v1beta1", "v1", "v1alpha1"];

/** Throws an error with file, line and field of each mistake. */
export function parseTracingConfiguration(path: string, text: string): TracingConfig {
  return readConfigurationFile(path, text, {
    kind: "TracingConfiguration",
    versions: VERSIONS,
    schema: tracingConfiguration,
    read: ({ endpoint, samplingRatePerMillion }) => {
      const value: TracingConfig = {
        endpoint: endpoint ?? undefined,
        samplingRatePerMillion: samplingRatePerMillion ?? undefined,
      };
      const errors = validateTracing(value, "");
      return errors.length > 0 ? { errors } : { value };
    },
  });
}

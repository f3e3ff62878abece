import { type FieldError, invalidField, requiredField } from "../../../schema/validation/field-error.ts";
import { goQuote } from "../../../schema/value/go-quote.ts";
import { dns1035Label, dns1123Subdomain, pathSegment, portNumber } from "../../meta/validation/names.ts";
import type { APIService, APIServiceSpec } from "./schema.ts";

const GROUP_PRIORITY_MAX = 20_000;
const VERSION_PRIORITY_MAX = 1000;

export function validateApiService({ metadata, spec }: APIService): readonly FieldError[] {
  const { generateName = "", name = "" } = metadata ?? {};
  const { group = "", version = "", groupPriorityMinimum = 0, versionPriority = 0 } = spec ?? {};
  const errors: FieldError[] = [];
  const named = `${version}.${group}`;
  for (const [field, text] of Object.entries({ generateName, name })) {
    if (text === "" || text === named || pathSegment(text).length > 0) continue;
    const detail = `must be \`spec.version+"."+spec.group\`: ${goQuote(named)}`;
    errors.push(invalidField(`metadata.${field}`, text, detail));
  }
  if (group === "" && version !== "v1") {
    const detail = "only v1 may have an empty group and it better be legacy kube";
    errors.push(requiredField("spec.group", detail));
  }
  const groupProblems = group === "" ? [] : dns1123Subdomain(group);
  errors.push(...groupProblems.map((problem) => invalidField("spec.group", group, problem)));
  errors.push(...dns1035Label(version).map((problem) => invalidField("spec.version", version, problem)));
  const priority = (field: string, value: number, most: number): void => {
    if (value > 0 && value <= most) return;
    errors.push(invalidField(`spec.${field}`, value, `must be positive and less than ${most}`));
  };
  priority("groupPriorityMinimum", groupPriorityMinimum, GROUP_PRIORITY_MAX);
  priority("versionPriority", versionPriority, VERSION_PRIORITY_MAX);
  return [...errors, ...(spec?.service === undefined ? validateLocal(spec) : validateService(spec, spec.service))];
}

/** Rules for a local API service: no certificate settings. */
function validateLocal(spec: APIServiceSpec | undefined): readonly FieldError[] {
  const { caBundle = "", insecureSkipTLSVerify } = spec ?? {};
  const errors: FieldError[] = [];
  if (caBundle !== "") {
    const size = `${Buffer.from(caBundle, "base64").length} bytes`;
    errors.push(invalidField("spec.caBundle", size, "local APIServices may not have a caBundle"));
  }
  if (insecureSkipTLSVerify === true) {
    const detail = "local APIServices may not have insecureSkipTLSVerify";
    errors.push(invalidField("spec.insecureSkipTLSVerify", true, detail));
  }
  return errors;
}

function validateService(
  { caBundle = "", insecureSkipTLSVerify }: APIServiceSpec,
  { namespace = "", name = "", port = 0 }: NonNullable<APIServiceSpec["service"]>,
): readonly FieldError[] {
  const problems = portNumber(port);
  const unsure = insecureSkipTLSVerify === true && caBundle !== "";
  return [
    ...(namespace === "" ? [requiredField("spec.service.namespace")] : []),
    ...(name === "" ? [requiredField("spec.service.name")] : []),
    ...(problems.length === 0
      ? []
      : [invalidField("spec.service.port", port, `port is not valid: ${problems.join(", ")}`)]),
    ...(unsure ? [invalidField("spec.insecureSkipTLSVerify", true, "may not be true if caBundle is present")] : []),
  ];
}

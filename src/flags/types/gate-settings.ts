/** `--feature-gates=WatchList=true,svc:AllAlpha=false`; gates.ts checks that the gates exist. */
import { ValueError, type ValueType } from "../flag.ts";

export type GateSettings = Readonly<Record<string, boolean>>;

/** With `component`, names may have it as a prefix: `svc:WatchList=true`. */
export function gateSettings(name: string, component?: string): ValueType<GateSettings> {
  const format =
    component === undefined
      ? "Gate=true or Gate=false"
      : `Gate=true or Gate=false, with ${component}: allowed in front`;
  return {
    name,
    allowed: `comma-separated ${format}`,
    sample: "AllAlpha=false",
    wrong: "AllAlpha=maybe",
    parse(text) {
      const settings: Record<string, boolean> = {};
      for (const part of text === "" ? [] : text.split(",")) {
        const match = /^(?:([a-z][a-z0-9-]*):)?([A-Za-z0-9]+)=(.+)$/.exec(part.trim());
        if (match === null) throw new ValueError(`${JSON.stringify(part)} must be ${format}`);
        const [, prefix, gate = "", value = ""] = match;
        if (prefix !== undefined && prefix !== component) {
          throw new ValueError(
            component === undefined
              ? `${JSON.stringify(part)} must be ${format}`
              : `${JSON.stringify(part)} names component ${prefix}: the only one is ${component}`,
          );
        }
        if (!/^(true|false)$/i.test(value)) {
          throw new ValueError(`gate ${gate} must be true or false, not ${JSON.stringify(value)}`);
        }
        settings[gate] = value.toLowerCase() === "true";
      }
      return settings;
    },
    print: (settings) =>
      Object.keys(settings)
        .sort()
        .map((gate) => `${gate}=${settings[gate]}`)
        .join(","),
    add: (previous, next) => ({ ...previous, ...next }),
    fromJson: (json) => json as GateSettings,
  };
}

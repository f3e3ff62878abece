import type { Strategy } from "../../kind.ts";
import { setSecretDefaults } from "./defaults.ts";
import type { Secret } from "./schema.ts";
import { keyPairProblem } from "./tls-key-pair.ts";
import { secretType, validateSecret, validateSecretUpdate } from "./validation.ts";

export const secretStrategy: Strategy<Secret> = {
  setDefaults: setSecretDefaults,
  validate: validateSecret,
  validateUpdate: validateSecretUpdate,
  warnings: certificateWarnings,
};

function certificateWarnings(object: Secret): readonly string[] {
  if (secretType(object) !== "tls") return [];
  const textOf = (name: string): string => Buffer.from(object.data?.[name] ?? "", "base64").toString("utf8");
  const problem = keyPairProblem(textOf("tls.crt"), textOf("tls.key"));
  return problem === undefined ? [] : [problem];
}

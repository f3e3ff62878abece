import { invalidField } from "../../../schema/validation/field-error.ts";
import { goPointer } from "../../../schema/validation/go-syntax.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import type { Strategy } from "../../kind.ts";
import { ipProblems } from "../../meta/validation/ip.ts";
import { type IPAddress, parentReference } from "./schema.ts";
import { PARENT, validateParent } from "./validation.ts";

export const ipAddressStrategy: Strategy<IPAddress> = {
  validate: (object) => validateParent(object.spec?.parentRef),
  validateUpdate: (next, previous) => {
    const { parentRef } = next.spec ?? {};
    // A generated name is never an IP address.
    const { generateName = "" } = next.metadata ?? {};
    const problems = generateName === "" ? [] : ipProblems(generateName);
    return [
      ...problems.map((problem) => invalidField("metadata.generateName", generateName, problem)),
      ...(deepEqual(parentRef, previous.spec?.parentRef)
        ? []
        : [invalidField(PARENT, goPointer(parentReference, parentRef), "field is immutable")]),
    ];
  },
};

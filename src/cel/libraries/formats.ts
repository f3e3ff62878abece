/** Named formats: `format.dns1123Label().validate(name)` is none for valid text, otherwise a list of errors. */
import { formatOf } from "../../schema/validation/formats.ts";
import { functionOf, type Library, method, overload } from "../functions.ts";
import { listType, opaqueType, optionalType, stringType, type Type } from "../values/types.ts";
import { ArrayList, Opaque, Optional, type Value } from "../values/value.ts";
import { checkRequestUri } from "./go-url.ts";

/** Returns the errors of a text; empty when it is valid. */
export type NameFormat = (text: string) => readonly string[];

/** Validation of names, which the API package implements. */
export interface NameFormats {
  readonly dns1123Label: NameFormat;
  readonly dns1123Subdomain: NameFormat;
  readonly dns1035Label: NameFormat;
  readonly qualifiedName: NameFormat;
  readonly labelValue: NameFormat;
}

const formatType = opaqueType("kubernetes.NamedFormat");

class Format extends Opaque {
  readonly type: Type = formatType;
  readonly name: string;
  readonly validate: NameFormat;
  readonly #patternLength: number;

  constructor(name: string, patternLength: number, validate: NameFormat) {
    super();
    this.name = name;
    this.validate = validate;
    this.#patternLength = patternLength;
  }

  override equals(other: Value): boolean {
    return other instanceof Format && other.name === this.name;
  }

  /** The length of the pattern, which determines the cost of `validate`. */
  override costSize(): number {
    return this.#patternLength;
  }
}

/** The format of a name's prefix, which can end in a dash. */
function prefixFormat(format: NameFormat): NameFormat {
  return (text) => format(text.length > 1 && text.endsWith("-") ? `${text.slice(0, -1)}a` : text);
}

function schemaFormat(format: string, message: string): NameFormat {
  const valid = formatOf(format);
  return (text) => (valid?.(text) === true ? [] : [message]);
}

function validateUri(text: string): readonly string[] {
  const error = checkRequestUri(text);
  return error === undefined ? [] : [error];
}

export function formats(names: NameFormats): Library {
  const all: readonly (readonly [string, Format])[] = [
    ["dns1123Label", new Format("DNS1123Label", 30, names.dns1123Label)],
    ["dns1123Subdomain", new Format("DNS1123Subdomain", 60, names.dns1123Subdomain)],
    ["dns1035Label", new Format("DNS1035Label", 30, names.dns1035Label)],
    ["qualifiedName", new Format("QualifiedName", 60, names.qualifiedName)],
    ["dns1123LabelPrefix", new Format("DNS1123LabelPrefix", 30, prefixFormat(names.dns1123Label))],
    ["dns1123SubdomainPrefix", new Format("DNS1123SubdomainPrefix", 60, prefixFormat(names.dns1123Subdomain))],
    ["dns1035LabelPrefix", new Format("DNS1035LabelPrefix", 30, prefixFormat(names.dns1035Label))],
    ["labelValue", new Format("LabelValue", 40, names.labelValue)],
    ["uri", new Format("URI", 1200, validateUri)],
    ["uuid", new Format("uuid", 80, schemaFormat("uuid", "does not match the UUID format"))],
    ["byte", new Format("byte", 88, schemaFormat("byte", "invalid base64"))],
    ["date", new Format("date", 96, schemaFormat("date", "invalid date"))],
    ["datetime", new Format("datetime", 96, schemaFormat("datetime", "invalid datetime"))],
  ];
  const byName = new Map(all);
  return {
    functions: [
      functionOf(
        "validate",
        method(
          "format-validate",
          [formatType, stringType],
          optionalType(listType(stringType)),
          (format: Format, text: string) => {
            const errors = format.validate(text);
            return errors.length === 0 ? Optional.none : Optional.of(new ArrayList(errors));
          },
        ),
      ),
      functionOf(
        "format.named",
        overload("format-named", [stringType], optionalType(formatType), (name: string) => {
          const format = byName.get(name);
          return format === undefined ? Optional.none : Optional.of(format);
        }),
      ),
      ...all.map(([name, format]) =>
        functionOf(
          `format.${name}`,
          overload(`format.${name}`, [], formatType, () => format),
        ),
      ),
    ],
  };
}

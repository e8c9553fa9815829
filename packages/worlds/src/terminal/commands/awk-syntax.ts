export type Expression =
  | { readonly type: "number"; readonly value: number }
  | { readonly type: "string"; readonly value: string }
  | { readonly type: "regex"; readonly source: string }
  | { readonly type: "variable"; readonly name: string }
  | { readonly type: "field"; readonly index: Expression }
  | { readonly type: "element"; readonly name: string; readonly indices: readonly Expression[] }
  | {
      readonly type: "assign";
      readonly operator: string;
      readonly target: Expression;
      readonly value: Expression;
    }
  | {
      readonly type: "choice";
      readonly condition: Expression;
      readonly yes: Expression;
      readonly no: Expression;
    }
  | {
      readonly type: "binary";
      readonly operator: string;
      readonly left: Expression;
      readonly right: Expression;
    }
  | { readonly type: "unary"; readonly operator: string; readonly operand: Expression }
  | {
      readonly type: "step";
      readonly by: 1 | -1;
      readonly before: boolean;
      readonly target: Expression;
    }
  | { readonly type: "in"; readonly indices: readonly Expression[]; readonly name: string }
  | { readonly type: "call"; readonly name: string; readonly args: readonly Expression[] }
  | { readonly type: "group"; readonly inside: Expression }
  | {
      readonly type: "getline";
      readonly target: Expression | undefined;
      readonly kind: "main" | "file" | "command";
      readonly from: Expression | undefined;
    };

export type Statement =
  | { readonly type: "expression"; readonly value: Expression }
  | {
      readonly type: "print";
      readonly format: boolean;
      readonly args: readonly Expression[];
      readonly operator: string | undefined;
      readonly to: Expression | undefined;
    }
  | {
      readonly type: "if";
      readonly condition: Expression;
      readonly yes: Statement;
      readonly no: Statement | undefined;
    }
  | {
      readonly type: "while";
      readonly condition: Expression;
      readonly body: Statement;
      readonly first: boolean;
    }
  | {
      readonly type: "for";
      readonly start: Statement | undefined;
      readonly condition: Expression | undefined;
      readonly step: Statement | undefined;
      readonly body: Statement;
    }
  | {
      readonly type: "each";
      readonly name: string;
      readonly array: string;
      readonly body: Statement;
    }
  | { readonly type: "block"; readonly body: readonly Statement[] }
  | { readonly type: "jump"; readonly kind: "break" | "continue" | "next" | "nextfile" }
  | { readonly type: "exit" | "return"; readonly value: Expression | undefined }
  | {
      readonly type: "delete";
      readonly name: string;
      readonly indices: readonly Expression[] | undefined;
    };

export interface AwkFunction {
  readonly parameters: readonly string[];
  readonly body: Statement;
}

export interface AwkProgram {
  readonly begin: readonly Statement[];
  readonly end: readonly Statement[];
  readonly rules: readonly {
    readonly from: Expression | undefined;
    readonly to: Expression | undefined;
    readonly body: Statement | undefined;
  }[];
  readonly functions: ReadonlyMap<string, AwkFunction>;
}

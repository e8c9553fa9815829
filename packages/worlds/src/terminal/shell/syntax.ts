/** What a command line says, as a tree. */

/** A part of a word; what is quoted is neither split nor matched against file names. */
export type WordPart =
  | { readonly type: "text"; readonly text: string; readonly quoted: boolean }
  | Parameter
  | { readonly type: "command"; readonly script: Script; readonly quoted: boolean }
  | { readonly type: "arithmetic"; readonly expression: Word; readonly quoted: boolean }
  | {
      readonly type: "process";
      readonly script: Script;
      readonly writes: boolean;
      readonly quoted: boolean;
    };

export type Word = readonly WordPart[];

/** `$name` and `${name…}`. */
export interface Parameter {
  readonly type: "parameter";
  readonly name: string;
  /** `name[index]`; `@` and `*` are all elements. */
  readonly index?: Word;
  readonly quoted: boolean;
  /** What is asked of it instead of its value: its length, what it names, its indices. */
  readonly form?: "length" | "indirect" | "indices" | "names";
  /** As written: `:-`, `##`, `//`, `:`, `^^`, … */
  readonly operator?: string;
  readonly operand?: Word;
  /** What follows a pattern's `/` or an offset's `:`. */
  readonly second?: Word;
}

export interface Assignment {
  readonly name: string;
  readonly index?: Word;
  readonly append: boolean;
  readonly value: Word | readonly ArrayElement[];
  readonly isArray: boolean;
}

/** An element of `name=(…)`. */
export interface ArrayElement {
  readonly index?: Word;
  readonly value: Word;
}

export interface Redirect {
  readonly fd: number | undefined;
  readonly operator: string;
  /** A file, a number, or the text of a here-document. */
  readonly target: Word;
}

export type TestNode =
  | { readonly type: "unary"; readonly operator: string; readonly operand: Word }
  | {
      readonly type: "binary";
      readonly operator: string;
      readonly left: Word;
      readonly right: Word;
    }
  | { readonly type: "not"; readonly operand: TestNode }
  | { readonly type: "and" | "or"; readonly left: TestNode; readonly right: TestNode };

export interface CaseItem {
  readonly patterns: readonly Word[];
  readonly body: Script;
  readonly end: ";;" | ";&" | ";;&";
}

export interface SimpleCommand {
  readonly type: "simple";
  readonly assignments: readonly Assignment[];
  readonly words: readonly Word[];
  /** What declarations assign, once they are made. */
  readonly arrays: readonly Assignment[];
  readonly redirects: readonly Redirect[];
  readonly line: number;
}

/** Commands that hold others. */
export type CompoundBody =
  | { readonly type: "group" | "subshell"; readonly body: Script }
  | {
      readonly type: "if";
      readonly branches: readonly { readonly condition: Script; readonly body: Script }[];
      readonly otherwise: Script | undefined;
    }
  | {
      readonly type: "loop";
      readonly until: boolean;
      readonly condition: Script;
      readonly body: Script;
    }
  | {
      readonly type: "for";
      readonly name: string;
      readonly words: readonly Word[] | undefined;
      readonly body: Script;
    }
  | { readonly type: "count"; readonly parts: readonly Word[]; readonly body: Script }
  | { readonly type: "case"; readonly word: Word; readonly items: readonly CaseItem[] }
  | { readonly type: "arithmetic"; readonly expression: Word }
  | { readonly type: "test"; readonly test: TestNode };

export interface CompoundCommand {
  readonly type: "compound";
  readonly inner: CompoundBody;
  readonly redirects: readonly Redirect[];
  readonly line: number;
}

export interface FunctionDefinition {
  readonly type: "function";
  readonly name: string;
  readonly body: Command;
}

export type Command = SimpleCommand | CompoundCommand | FunctionDefinition;

export interface Pipeline {
  readonly commands: readonly Command[];
  readonly negated: boolean;
}

/** Pipelines joined by `&&` and `||`. */
export interface Chain {
  readonly pipelines: readonly Pipeline[];
  /** Between the pipelines: one fewer. */
  readonly operators: readonly ("&&" | "||")[];
  readonly background: boolean;
}

export type Script = readonly Chain[];

/** A command line that cannot be read. */
export class ShellSyntaxError extends Error {
  constructor(
    message: string,
    readonly line: number,
  ) {
    super(message);
  }
}

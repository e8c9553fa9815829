export function slug(heading: string): string;

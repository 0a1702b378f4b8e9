export function renderDocs(modules: { keys: object; defaults: object; errors: object }): Record<string, string>;

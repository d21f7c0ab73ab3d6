// Dark or light: the system's preference unless a person chose one on this machine.
import { signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";
const kKey = "stint.theme";
const kOrder: Theme[] = ["system", "light", "dark"];

export const theme = signal<Theme>((localStorage.getItem(kKey) as Theme | null) ?? "system");

export function applyTheme(): void {
  const root = document.documentElement;
  if (theme.value === "system") delete root.dataset.theme;
  else root.dataset.theme = theme.value;
}

export function nextTheme(): void {
  theme.value = kOrder[(kOrder.indexOf(theme.value) + 1) % kOrder.length] ?? "system";
  localStorage.setItem(kKey, theme.value);
  applyTheme();
}

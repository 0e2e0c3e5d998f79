// The pages work without this script. It adds buttons that copy a text or show a password.
for (const button of document.querySelectorAll('button[data-copy]')) {
  const field = document.getElementById(button.dataset.copy);
  field.addEventListener('focus', () => field.select?.());
  if (!navigator.clipboard) continue;
  button.hidden = false;
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(field.value ?? field.textContent);
    const label = button.querySelector('.hidden') ?? button;
    const before = label.textContent;
    if (before === 'Copied') return;
    label.textContent = 'Copied';
    button.classList.add('copied');
    setTimeout(() => {
      label.textContent = before;
      button.classList.remove('copied');
    }, 2000);
  });
}

for (const button of document.querySelectorAll('button[data-show]')) {
  const field = document.getElementById(button.dataset.show);
  button.hidden = false;
  button.addEventListener('click', () => {
    const shown = field.type === 'password';
    field.type = shown ? 'text' : 'password';
    button.textContent = shown ? 'Hide password' : 'Show password';
    button.setAttribute('aria-pressed', String(shown));
  });
}

// The first field with a problem, so that a keyboard is at the place to correct.
document.querySelector('main [aria-invalid="true"]')?.focus();

// A form that downloads a file leaves the page as it is, with the problem of the attempt before.
document.addEventListener('submit', ({ target }) => {
  for (const problem of document.querySelectorAll('main > .alert'))
    if (problem.closest('main').contains(target)) problem.remove();
});

// A double click sends a form once.
document.addEventListener('click', (event) => {
  if (event.detail > 1 && event.target.closest('form[method="post"] button:not([type])'))
    event.preventDefault();
});

for (const menu of document.querySelectorAll('details.account')) {
  document.addEventListener('click', ({ target }) => {
    if (!menu.contains(target)) menu.open = false;
  });
  menu.addEventListener('focusout', ({ relatedTarget }) => {
    if (relatedTarget && !menu.contains(relatedTarget)) menu.open = false;
  });
  document.addEventListener('keydown', ({ key }) => {
    if (key !== 'Escape' || !menu.open) return;
    menu.open = false;
    menu.querySelector('summary').focus();
  });
}

// On a phone the tabs scroll.
for (const tab of document.querySelectorAll('.tabs [aria-current]'))
  tab.scrollIntoView({ block: 'nearest', inline: 'center' });

// A filter is sent after each change, without its button. Several changes in a row, as with the arrow keys, are sent
// once; a date is complete when its field loses the focus. The focus returns to the field on the next page.
for (const form of document.querySelectorAll('form[data-filter]')) {
  form.querySelector('button').hidden = true;
  form.querySelector('[data-filter-note]').hidden = false;
  let timer;
  const send = () => {
    const { activeElement } = document;
    if (form.contains(activeElement)) sessionStorage.setItem('filter', activeElement.id);
    form.requestSubmit();
  };
  form.addEventListener('change', ({ target }) => {
    clearTimeout(timer);
    if (target.type === 'date') return;
    // The dates of a custom period follow.
    if (target.value === 'custom') return;
    timer = setTimeout(send, 400);
  });
  for (const date of form.querySelectorAll('[type=date]')) {
    // defaultValue may be a day that doesn't exist: the field is then empty.
    const sent = date.value;
    date.addEventListener('blur', () => {
      if (date.value !== sent) send();
    });
  }
  // Empty fields, and the dates of a period that isn't custom, don't belong in the URL.
  form.addEventListener('formdata', ({ formData }) => {
    for (const [name, value] of [...formData]) if (value === '') formData.delete(name);
    if (formData.get('range') === 'custom') return;
    for (const date of form.querySelectorAll('[type=date]')) formData.delete(date.name);
  });
  const field = document.getElementById(sessionStorage.getItem('filter') ?? '');
  sessionStorage.removeItem('filter');
  if (field && form.contains(field)) field.focus({ preventScroll: true });
}

// A chart is one Tab stop; the arrow keys move between columns. The listeners are on the element around the image,
// because Chromium makes an image with a listener for the focus a Tab stop of its own.
for (const plot of document.querySelectorAll('.plot')) {
  const columns = [...plot.querySelectorAll('.column')];
  const tip = plot.querySelector('.tip');
  for (const column of columns) column.querySelector('title').remove();
  const choose = (chosen) =>
    columns.forEach((one) => one.setAttribute('tabindex', one === chosen ? '0' : '-1'));
  choose(columns.at(-1));
  const show = (column, x, y) => {
    tip.hidden = false;
    tip.textContent = column.getAttribute('aria-label');
    const area = plot.getBoundingClientRect();
    const left = Math.min(Math.max(x - area.left - tip.offsetWidth / 2, 0), area.width - tip.offsetWidth);
    const above = y - area.top - tip.offsetHeight - 12;
    tip.style.left = `${left}px`;
    tip.style.top = `${above < 0 ? y - area.top + 20 : above}px`;
  };
  const showFocused = () => {
    const focused = columns.find((one) => one === document.activeElement);
    tip.hidden = true;
    if (!focused) return;
    const { left, width, top } = (focused.querySelector('.revenue') ?? focused).getBoundingClientRect();
    show(focused, left + width / 2, top);
  };
  plot.addEventListener('focusin', ({ target }) => {
    if (!columns.includes(target)) return;
    choose(target);
    showFocused();
  });
  plot.addEventListener('focusout', () => (tip.hidden = true));
  plot.addEventListener('pointermove', ({ target, clientX, clientY }) => {
    const column = target.closest('.column');
    if (column) show(column, clientX, clientY);
  });
  plot.addEventListener('pointerleave', showFocused);
  plot.addEventListener('keydown', (event) => {
    const at = columns.indexOf(document.activeElement);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: columns.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    columns[to]?.focus();
  });
}

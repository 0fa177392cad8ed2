package clinic;

import java.time.LocalDate;
import org.springframework.dao.OptimisticLockingFailureException;
import org.springframework.data.domain.PageRequest;
import org.springframework.data.domain.Sort;
import org.springframework.format.annotation.DateTimeFormat;
import org.springframework.stereotype.Controller;
import org.springframework.ui.Model;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestParam;

/** Each page, and where its form is sent. */
@Controller
class Pages {
    private static final int OWNERS = 10;
    private static final int VETS = 5;
    private static final int LAST_VISITS = 12;

    private final Owners owners;
    private final Vets vets;
    private final Visits visits;
    private final Pets pets;
    private final Desk desk;

    Pages(Owners owners, Vets vets, Visits visits, Pets pets, Desk desk) {
        this.owners = owners;
        this.vets = vets;
        this.visits = visits;
        this.pets = pets;
        this.desk = desk;
    }

    @GetMapping("/")
    String home(Model model) {
        model.addAttribute("owners", owners.count());
        model.addAttribute("pets", pets.count());
        model.addAttribute("visits", visits.findLast(PageRequest.of(0, LAST_VISITS)));
        model.addAttribute("kinds", visits.countByKind());
        return "home";
    }

    @GetMapping("/owners")
    String owners(
            @RequestParam(defaultValue = "") String beginning,
            @RequestParam(defaultValue = "1") int page,
            Model model) {
        model.addAttribute("beginning", beginning);
        model.addAttribute(
                "owners",
                owners.findByLastNameStartingWithOrderByLastNameAscIdAsc(beginning, PageRequest.of(page - 1, OWNERS)));
        return "owners";
    }

    @GetMapping("/owners/{id}")
    String owner(@PathVariable int id, Model model) {
        model.addAttribute("owner", owners.findById(id).orElseThrow());
        return "owner";
    }

    @GetMapping("/vets")
    String vets(@RequestParam(defaultValue = "1") int page, Model model) {
        model.addAttribute("vets", vets.findAll(PageRequest.of(page - 1, VETS, Sort.by("name"))));
        return "vets";
    }

    @GetMapping("/owners/new")
    String newOwner() {
        return "new-owner";
    }

    @PostMapping("/owners/new")
    String addOwner(
            @RequestParam String firstName,
            @RequestParam String lastName,
            @RequestParam String address,
            @RequestParam String city,
            @RequestParam String telephone) {
        var owner = desk.add(new Owner(firstName, lastName, address, city, telephone));
        return "redirect:/owners/" + owner.getId();
    }

    @GetMapping("/owners/{id}/edit")
    String editOwner(@PathVariable int id, Model model) {
        model.addAttribute("owner", owners.findById(id).orElseThrow());
        return "edit-owner";
    }

    @PostMapping("/owners/{id}/edit")
    String changeOwner(@PathVariable int id, @RequestParam String telephone) {
        try {
            desk.changeTelephone(id, telephone);
        } catch (OptimisticLockingFailureException other) {
            // Someone else has just changed it: here is what it is now.
            return "redirect:/owners/" + id + "/edit";
        }
        return "redirect:/owners/" + id;
    }

    @PostMapping("/pets/{id}/visits")
    String addVisit(
            @PathVariable int id,
            @RequestParam @DateTimeFormat(iso = DateTimeFormat.ISO.DATE) LocalDate date,
            @RequestParam String description) {
        return "redirect:/owners/" + desk.addVisit(id, date, description);
    }
}
